"""Export of a model with its tokenizers, without a run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keras_seq.serving.publishing import check_base
from keras_seq.serving.saved_model import publish
from keras_seq.serving.signature_module import require_tensorflow
from keras_seq.settings import Settings, load_settings
from keras_seq.tasks.translation import TranslationExporter
from keras_seq.text import InputError, Tokenizer


class _Subject(NamedTuple):
    """The parts of a run that the exporter reads."""

    settings: Settings
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    texts: list[str]
    has_valid_lines: bool = True

    @property
    def languages(self) -> list[str]:
        return sorted(self.source_tokenizer.languages)

    def valid_lines(self) -> tuple[list[str], list[str]]:
        return self.texts, []


def export_model(
    model: Any,
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    base: str | os.PathLike[str],
    *,
    texts: Sequence[str],
    max_source_length: int = 200,
    ids_only: bool = False,
    notice: Callable[[str], None] | None = None,
    **search: Any,
) -> Path:
    """Exports a translation model from a notebook as the next SavedModel version in `base`.

    The signatures, the proof and the files are those of `export_saved_model`.

    Args:
        model: A Keras model on TensorFlow with `encoder`, `initial_state`, `decoder_step` and
            `grow_state`, such as those of `keras_seq.models`. `UncachedSeq2Seq` gives these methods
            to a plain functional model.
        source_tokenizer: The tokenizer of the source.
        target_tokenizer: The tokenizer of the target; the same object if both sides share one.
        base: Directory of the versions; created if it is missing.
        texts: Source texts for the proof: the export, in a process without Keras, must return the
            translations of the model.
        max_source_length: Maximum number of source tokens; longer sources are truncated.
        ids_only: Boolean, whether to omit the text operations; see `export_saved_model`.
        notice: Called with lines that report the progress.
        **search: Search settings, such as `beam_size=4`; see `SearchSettings`.

    Returns:
        The path of the version.

    Raises:
        InputError: If the model lacks a method, there are no texts, `base` cannot be written, or
            the proof fails; nothing is published.
        SettingsError: If a search setting is unknown or out of bounds.
        RuntimeError: If Keras does not run on TensorFlow.
    """
    require_tensorflow()
    parts = ("encoder", "initial_state", "decoder_step", "grow_state")
    missing = [part for part in parts if not hasattr(model, part)]
    if missing:
        raise InputError(
            f"{type(model).__name__} lacks {', '.join(missing)}: UncachedSeq2Seq adds them to a "
            "functional model"
        )
    lines = [text for text in texts if text.strip()]
    if not lines:
        raise InputError("texts: received no text, expected at least one for the proof")
    base = Path(base)
    check_base(base)
    settings = load_settings(overrides={"data.max_source_length": max_source_length})
    settings = settings.with_search(search)
    subject: Any = _Subject(settings, source_tokenizer, target_tokenizer, lines)
    content: dict[str, Any] = {"runs": [{"name": model.name, "step": 0}]}
    if source_tokenizer.languages:
        content["languages"] = sorted(source_tokenizer.languages)
    record = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    return publish(
        base,
        TranslationExporter(subject, settings),
        model,
        vocabularies=(source_tokenizer, target_tokenizer),
        record=record.encode(),
        batch_size=settings.search.batch_size,
        ids_only=ids_only,
        verify=len(lines),
        proof="texts come out as the model translates them",
        report=notice or (lambda line: None),
    )
