"""Training failures and their exit codes."""


class TrainingError(RuntimeError):
    """Raised if a training cannot continue. Saved checkpoints remain."""

    exit_code = 1


class DivergedError(TrainingError):
    """Raised if gradients or weights are no longer finite."""

    exit_code = 3


class OutOfMemoryError(TrainingError):
    """Raised if a batch does not fit into memory."""

    exit_code = 4
