"""The search that settings ask for, over a model and a vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras import ops

from keras_seq.search import beam_search, sample
from keras_seq.settings import SearchSettings, SettingsError
from keras_seq.text import UNK_ID, Tokenizer

# What both kinds of search take as it stands in the settings.
_SHARED = (
    "length_normalization",
    "alpha",
    "min_length",
    "min_length_ratio",
    "max_length",
    "max_length_ratio",
    "max_length_extra",
    "no_repeat_ngram_size",
    "repetition_penalty",
)
_BEAM = ("beam_size", "n_best", "patience", "coverage_penalty")
_SAMPLING = ("seed", "temperature", "top_k", "top_p")
_NEVER_GENERATED = (0, 1, 2)


def make_search(
    model: Any,
    settings: SearchSettings,
    tokenizer: Tokenizer,
    *,
    unknown: bool = False,
    record: bool = False,
) -> Callable[..., Any]:
    """The search over a model, to be compiled or put into a graph.

    Args:
        model: A model of `keras_seq.models`, or an `Ensemble`.
        settings: Settings of the search.
        tokenizer: Of the target, for the texts among the settings.
        unknown: Whether the unknown token may be generated.
        record: Whether the search keeps a record of itself.

    Returns:
        A function of `source` `(B, S)` and `prefix`, `(B, P)` padded with 0 or None for
        the one of the settings, to a `SearchResult`; with `record` to a pair of it and a
        `SearchRecord`.

    Raises:
        SettingsError: A forbidden text or a prefix of which the tokenizer leaves nothing, or
            a prefix that fills all of `search.max_length`; or `record` of a sampling.
    """
    options: dict[str, Any] = {name: getattr(settings, name) for name in _SHARED}
    forbidden = settings.forbidden or []
    sequences = [
        _encoded(tokenizer, text, "forbidden")
        for text in ([forbidden] if isinstance(forbidden, str) else forbidden)
    ]
    # A single token costs nothing to strike out.
    options["forbidden_tokens"] = (
        *(token for token in _NEVER_GENERATED if not (unknown and token == UNK_ID)),
        *(s[0] for s in sequences if len(s) == 1),
    )
    options["forbidden_sequences"] = tuple(s for s in sequences if len(s) > 1)
    if settings.method == "sampling":
        if record:
            raise SettingsError(
                "search.method: received sampling, expected beam: sampling has no beam to show"
            )
        search: Any = sample
        options |= {"samples": settings.n_best}
        options |= {name: getattr(settings, name) for name in _SAMPLING}
    else:
        search = beam_search
        options |= {name: getattr(settings, name) for name in _BEAM} | {"record": record}
    fixed = None
    if settings.prefix is not None:
        fixed = _encoded(tokenizer, settings.prefix, "prefix")
        if len(fixed) >= settings.max_length:
            raise SettingsError(
                f"search.prefix: it has {len(fixed)} tokens, expected fewer than "
                f"search.max_length ({settings.max_length})"
            )

    def find(source: Any, prefix: Any = None) -> Any:
        if prefix is None and fixed is not None:
            row = ops.array([fixed], "int32")
            prefix = ops.broadcast_to(row, (ops.shape(source)[0], len(fixed)))
        return search(model, source, prefix=prefix, **options)

    return find


def _encoded(tokenizer: Tokenizer, text: str, name: str) -> tuple[int, ...]:
    (ids,) = tokenizer.encode([text])
    if not ids:
        raise SettingsError(f"search.{name}: received {text!r}, of which nothing is left as tokens")
    return tuple(ids)
