"""Layers from sound to logits."""
