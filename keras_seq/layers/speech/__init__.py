"""Layers for speech, from audio to logits."""
