"""Attention: additive, multiplicative, monotonic, multi-head, and cells with it."""
