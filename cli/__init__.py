"""Command-line interface of keras-seq: parses options, calls the library, prints results."""
