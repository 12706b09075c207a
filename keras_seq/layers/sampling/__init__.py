"""Decoders that feed on their own output, step by step."""
