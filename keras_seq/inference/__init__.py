"""Text in, text out: the classes that load a run and answer.

This file imports nothing, so that parts of this folder load without Keras.
"""
