"""Decoders that read their own output at the next step."""
