"""Training failures and their exit codes."""


class TrainingError(RuntimeError):
    """A training cannot continue. Saved checkpoints remain."""

    exit_code = 1


class DivergedError(TrainingError):
    """Gradients or weights are no longer finite."""

    exit_code = 3


class OutOfMemoryError(TrainingError):
    """A batch does not fit into memory."""

    exit_code = 4


def is_out_of_memory(error: BaseException) -> bool:
    """Whether this error of a backend or of Python means that memory ran out."""
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "ResourceExhaustedError"
        or "RESOURCE_EXHAUSTED" in str(error)
        # TensorFlow uses oneDNN on CPUs, whose status 1 is `dnnl_out_of_memory`.
        or (type(error).__name__ == "AbortedError" and "Status: 1," in str(error))
    )
