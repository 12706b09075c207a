"""Embeddings of tokens, characters and trigrams."""
