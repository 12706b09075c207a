"""Additive, multiplicative, monotonic and multi-head attention, and cells with attention."""
