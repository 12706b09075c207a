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


def is_out_of_memory(error: BaseException) -> bool:
    """Returns True if an error of a backend or of Python means that memory ran out."""
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ in ("ResourceExhaustedError", "OutOfMemoryError")
        or "RESOURCE_EXHAUSTED" in str(error)
        # Torch on a CPU.
        or "can't allocate memory" in str(error)
        # TensorFlow uses oneDNN on CPUs, whose status 1 is `dnnl_out_of_memory`.
        or (type(error).__name__ == "AbortedError" and "Status: 1," in str(error))
    )
