"""The file of a SavedModel, read and checked without TensorFlow."""
