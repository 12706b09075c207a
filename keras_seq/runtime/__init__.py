"""The process: threads, memory, signals and devices. Nothing here imports Keras."""
