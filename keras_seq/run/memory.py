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


def require_search_memory(rows: int, hypotheses: int, vocabulary_size: int) -> None:
    """Raises InputError if the memory cannot hold the scores of a step, `(B, K, V)`."""
    _require(
        4 * rows * hypotheses * vocabulary_size,
        f"a search with {rows * hypotheses:,} hypotheses at once",
        "lower search.batch_size or search.beam_size",
    )


def attention_fits(settings: Settings, rows: int, source_length: int) -> bool:
    """Returns False if the memory cannot hold the attention among the tokens of the sources."""
    return not _on_cpu() or _attention_bytes(settings, source_length, rows) <= free_memory()


def _attention_bytes(settings: Settings, source_length: int, rows: int = 1) -> int:
    """Returns the bytes of the attention weights `(B, H, S, S)` of a layer in half precision."""
    return 2 * rows * settings.model.attention_heads * source_length**2


def _require(size: int, what: str, advice: str) -> None:
    if _on_cpu():
        require_memory(size, what, advice)


def _on_cpu() -> bool:
    return backend.device()[0] == "cpu"
