"""The process: threads, memory, signals and devices. This package does not import Keras."""
