"""What is shown of a translation: formats, word alignments, attention and the beam.

Imports nothing, for blank lines are written without Keras.
"""
