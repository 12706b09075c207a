"""Whose fault a bad translation is, the model's or the search's: `keras_seq.diagnose`.

Imports nothing, for the command asks for `settings` before Keras is needed.
"""
