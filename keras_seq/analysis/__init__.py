"""Attention, word alignments, beams, and errors. Imports nothing, so parts load without Keras."""
