"""Classes that load a run and predict. Imports no module, because some need Keras."""
