"""Analysis of attention, alignments, beams and errors. Imports no module, as some need Keras."""
