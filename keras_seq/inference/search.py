"""Searches built from `SearchSettings` for a model and a tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from keras import ops

from keras_seq import backend
from keras_seq.search import SearchConfig, beam_search, sample
from keras_seq.search.config import NEVER_GENERATED
from keras_seq.search.options import SearchOptions
from keras_seq.settings import SearchSettings, SettingsError
from keras_seq.text import UNK_ID, Tokenizer


def make_search(
    model: Any,
    settings: SearchSettings,
    tokenizer: Tokenizer,
    *,
    unknown: bool = False,
    record: bool = False,
) -> Callable[..., Any]:
    """Builds a search function from `SearchSettings`, for compilation or for an exported graph.

    The function takes `source` `(B, S)` and `prefix`, which is `(B, P)` padded with 0, or None for
    the prefix of the settings. It returns a `SearchResult`; with `record`, also a `SearchRecord`.
    With `unknown`, it may generate the unknown token. Raises SettingsError if a forbidden text or a
    prefix has no tokens, a prefix is too long, or `record` is combined with sampling.
    """
    config = search_config(settings, tokenizer, unknown=unknown)
    options: dict[str, Any] = {}
    search: Any = sample
    if settings.method == "beam":
        search, options = beam_search, {"record": record}
    elif record:
        raise SettingsError(
            "search.method: received sampling, expected beam: sampling has no beam to show"
        )
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
            prefix = ops.broadcast_to(row, (backend.shape(source)[0], len(fixed)))
        return search(model, source, config, prefix=prefix, **options)

    return find


def search_config(
    settings: SearchSettings, tokenizer: Tokenizer, *, unknown: bool = False
) -> SearchConfig:
    """Converts `SearchSettings` to a `SearchConfig` with token ids.

    Raises SettingsError if a forbidden text has no tokens, or `search.rerank` is not none.
    """
    if settings.rerank != "none":
        raise SettingsError(
            f"search.rerank: received {settings.rerank}, expected none: only translations by a run "
            "are reranked"
        )
    texts = settings.forbidden or []
    sequences = [
        _encoded(tokenizer, text, "forbidden")
        for text in ([texts] if isinstance(texts, str) else texts)
    ]
    # Forbidding a single token is cheaper than forbidding a sequence.
    single = (sequence[0] for sequence in sequences if len(sequence) == 1)
    never = (token for token in NEVER_GENERATED if not (unknown and token == UNK_ID))
    return SearchConfig(
        **{option.name: getattr(settings, option.name) for option in fields(SearchOptions)},
        forbidden_tokens=(*never, *single),
        forbidden_sequences=tuple(sequence for sequence in sequences if len(sequence) > 1),
    )


def _encoded(tokenizer: Tokenizer, text: str, name: str) -> tuple[int, ...]:
    (ids,) = tokenizer.encode([text])
    if not ids:
        raise SettingsError(f"search.{name}: received {text!r}, which has no tokens")
    return tuple(ids)
