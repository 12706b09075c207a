"""Analyzes attention, alignments, beams, errors. Imports no modules, because some need Keras."""
