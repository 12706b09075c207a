"""Text in, text out: the classes that load a run. Imports nothing, so parts load without Keras."""
