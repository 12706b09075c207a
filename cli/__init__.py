"""The command line of keras-seq: options to settings, one call, print."""
