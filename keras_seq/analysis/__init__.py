"""Views of a translation: attention, word alignments, the beam, and what went wrong.

This file imports nothing, so that parts of this folder load without Keras.
"""
