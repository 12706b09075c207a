"""Checks that a model and its computations fit into the memory, before anything is built.

They apply to a CPU only, because a GPU or TPU has a memory of its own.
"""

from __future__ import annotations

from keras_seq import backend
from keras_seq.process.memory import free_memory, require_memory
from keras_seq.settings import TASKS, Settings


def require_model_memory(
    settings: Settings,
    source_vocabulary_size: int,
    target_vocabulary_size: int,
    copies: int = 1,
) -> None:
    """Raises InputError if the memory cannot hold `copies` of the weights."""
    has_labels = TASKS[settings.task].has_labels
    rows = source_vocabulary_size if has_labels else target_vocabulary_size
    model = settings.model
    parameters = model.min_parameters() + rows * model.min_token_parameters
    _require(
        4 * copies * parameters,
        f"a model of more than {parameters:,} parameters",
        "use a smaller model or a smaller vocabulary",
    )


def require_source_memory(settings: Settings) -> None:
    """Raises InputError if the memory cannot hold the attention to a source of full length."""
    length = settings.data.max_source_length
    _require(
        _attention_bytes(settings, length),
        f"the attention among data.max_source_length ({length:,}) tokens",
        "lower that setting",
    )


def fitting_rows(
    row_bytes: tuple[float, float], rows: int, batches: int, what: str, advice: str
) -> int:
    """Returns how many rows of a batch fit into the memory; see `fitting_count`.

    Args:
        row_bytes: The bytes that a row needs at least, and those that it may need.
        rows: The rows of a batch.
        batches: Number of batches at a time.
        what: What takes the memory of one row, for the message.
        advice: What to do instead.

    Raises:
        InputError: If one row does not fit.
    """
    least, most = row_bytes
    rows = fitting_count(batches * most, rows)
    _require(least, what, advice)
    return rows


def fitting_count(size: float, count: int) -> int:
    """Returns how many things of `size` bytes fit: `count`, or a half, a quarter, ..., at least 1.

    Each number of rows is compiled separately where shapes are static, so there are few.
    """
    while count > 1 and not _fits(count * size):
        count = (count + 1) // 2
    return count


def attention_fits(settings: Settings, rows: int, source_length: int) -> bool:
    """Returns False if the memory cannot hold the attention among the tokens of the sources."""
    return _fits(_attention_bytes(settings, source_length, rows))


def _attention_bytes(settings: Settings, source_length: int, rows: int = 1) -> int:
    """Returns the bytes of the attention weights `(B, H, S, S)` of a layer in half precision."""
    return 2 * rows * settings.model.attention_heads * source_length**2


def _fits(size: float) -> bool:
    return not _on_cpu() or size <= free_memory()


def _require(size: float, what: str, advice: str) -> None:
    if _on_cpu():
        require_memory(size, what, advice)


def _on_cpu() -> bool:
    return backend.device()[0] == "cpu"
