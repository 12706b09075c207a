"""Classes that load a run and predict. Imports no modules, because some modules need Keras."""
