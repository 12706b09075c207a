"""Blocks of Transformers."""
