"""Reads and checks the file of a SavedModel without TensorFlow."""
