"""Ends of a training that are no error of the user's files, each with an exit code of its own."""


class TrainingError(RuntimeError):
    """A training that cannot go on; checkpoints saved before stay."""

    exit_code = 1


class DivergedError(TrainingError):
    """Gradients or weights are no longer finite."""

    exit_code = 3


class OutOfMemoryError(TrainingError):
    """A batch does not fit into memory."""

    exit_code = 4


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a backend, or Python, says by this error that memory has run out."""
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "ResourceExhaustedError"
        or "RESOURCE_EXHAUSTED" in str(error)
        # oneDNN, which TensorFlow computes with on CPUs; its status 1 is `dnnl_out_of_memory`.
        or (type(error).__name__ == "AbortedError" and "Status: 1," in str(error))
    )
