"""Generation of targets in one call."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import keras
import numpy as np

from keras_seq import backend
from keras_seq.search.beam import beam_search
from keras_seq.search.config import SearchConfig
from keras_seq.search.sampling import sample
from keras_seq.text import EOS_ID

_METHODS = {"beam": beam_search, "sampling": sample}
# Compiled searches that are kept, with their models.
_KEPT = 4


def generate(
    model: Any,
    source: Any = None,
    *,
    prefix: Sequence[Sequence[int]] | None = None,
    method: Literal["beam", "sampling"] = "beam",
    batch_size: int = 32,
    **options: Any,
) -> list[list[int]]:
    """Generates the best target of each source, as token ids.

    This compiles `beam_search` or `sample` for a model, and runs it in batches. The first call with
    a model and options compiles, which takes seconds. For texts, see `keras_seq.Translator` and
    `keras_seq.Generator`, which also take a model with its tokenizers.

    Args:
        model: Any model with the methods that `beam_search` names, such as those of
            `keras_seq.models`.
        source: Rows of ids, each with its end token, as in training: a list of lists, or an array
            `(N, S)` padded with 0. Or an array or a dict of arrays, `(N, ...)`, for an encoder of
            other inputs. None for a language model, which only continues `prefix`.
        prefix: Ids that each target begins with; empty lists are allowed.
        method: "beam" for beam search, "sampling" for random samples.
        batch_size: Rows that are searched at once.
        **options: Fields of `SearchConfig`, such as `beam_size`, `max_length` or `temperature`.

    Returns:
        A list of N lists of ids, with the prefixes and without end tokens.

    Raises:
        TypeError: If the model has no `decoder_step`, or an option is unknown.
        ValueError: If an option is out of range, or `source` and `prefix` are missing or have
            different numbers of rows.

    Example:

    >>> model = Transformer(9, 9, 1, 1, units=8, feedforward_units=8, num_heads=2)
    >>> len(generate(model, [[5, 6, 3], [7, 3]], beam_size=2, max_length=4))
    2
    """
    if not hasattr(model, "decoder_step"):
        raise TypeError(
            "`model` must have `encoder`, `initial_state` and `decoder_step`, received "
            f"{type(model).__name__}."
        )
    if method not in _METHODS:
        raise ValueError(f"`method` must be 'beam' or 'sampling', received {method!r}.")
    if source is None:
        if prefix is None:
            raise ValueError("Received neither `source` nor `prefix`, expected one of them.")
        # The source of a language model is empty.
        source = [[EOS_ID] for _ in prefix]
    is_ragged = isinstance(source, Sequence)
    flat = [source] if is_ragged else keras.tree.flatten(source)
    parts: list[Any] = flat if is_ragged else [np.asarray(part) for part in flat]
    count = len(parts[0])
    if prefix is not None and len(prefix) != count:
        raise ValueError(f"Received {count} rows of `source` and {len(prefix)} of `prefix`.")
    config = SearchConfig(**options)
    if config.n_best > 1:
        raise ValueError("`n_best` must be 1; `keras_seq.search.beam_search` returns several.")
    names = tuple(sorted(source)) if isinstance(source, Mapping) else None
    kinds = tuple((2, "int32") if is_ragged else _kind(part) for part in parts)
    search = _compiled(model, method, config, names, kinds, prefix is not None)
    found: list[list[int]] = []
    for start in range(0, count, batch_size):
        rows = slice(start, start + batch_size)
        arrays = [
            backend.padded(part[rows], batch_size, 16) if is_ragged else part[rows]
            for part in parts
        ]
        size = min(batch_size, count - start)
        if prefix is not None:
            height = batch_size if is_ragged else size
            arrays.append(backend.padded(prefix[rows], height, 8))
        result = keras.tree.map_structure(keras.ops.convert_to_numpy, search(*arrays))
        for tokens, length in zip(result.tokens[:size, 0], result.lengths[:size, 0], strict=True):
            found.append([int(token) for token in tokens[:length] if token != EOS_ID])
    return found


@functools.lru_cache(maxsize=_KEPT)
def _compiled(
    model: Any,
    method: str,
    config: SearchConfig,
    names: tuple[str, ...] | None,
    kinds: tuple[tuple[int, str], ...],
    has_prefix: bool,
) -> Callable[..., Any]:
    def find(*arrays: Any) -> Any:
        parts = arrays[:-1] if has_prefix else arrays
        source = parts[0] if names is None else dict(zip(names, parts, strict=True))
        prefix = arrays[-1] if has_prefix else None
        return _METHODS[method](model, source, config, prefix=prefix)

    ranks, dtypes = zip(*kinds, *([(2, "int32")] if has_prefix else []), strict=True)
    return backend.compiled(find, model.variables, ranks, dtypes)


def _kind(part: np.ndarray) -> tuple[int, str]:
    is_integer = np.issubdtype(part.dtype, np.integer)
    return part.ndim, "int32" if is_integer else "float32"
