"""Error analysis of a run: search error or model error."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from keras_seq.analysis.diagnosis.result import Diagnosis
from keras_seq.analysis.diagnosis.settings import diagnosis_settings
from keras_seq.analysis.diagnosis.verdicts import judge
from keras_seq.inference.hypothesis import Hypothesis
from keras_seq.inference.likelihood import LikelihoodScorer, LongTargetError, check_target_lengths
from keras_seq.inference.predictor import check_pairs, open_trained_run
from keras_seq.inference.translator import Translator
from keras_seq.run.models import load_models
from keras_seq.text import feature_notice

__all__ = ["Diagnosis", "LongTargetError", "diagnose"]


def diagnose(
    path: str | os.PathLike[str],
    sources: Sequence[str],
    references: Sequence[str],
    *,
    beam_sizes: Sequence[int] = (5, 10, 50),
    which: str | int = "best",
    ensemble: Sequence[str | os.PathLike[str]] = (),
    notice: Callable[[str], None] | None = None,
    **search: Any,
) -> Diagnosis:
    """Attributes each wrong translation to the model or to the search.

    Every line is translated with every beam. The model is loaded once.

    Args:
        path: The run directory.
        sources: Lines of text.
        references: A good translation of each line.
        beam_sizes: Beam sizes. The first is judged, and all other beam sizes are compared with it.
        which: Checkpoint: `"best"`, `"latest"`, or the step of a stored checkpoint.
        ensemble: Other run directories with the same vocabularies. The models form an ensemble
            with the model at `path`, whose settings apply.
        notice: Receives a line after each beam, and for each damaged checkpoint that is skipped.
        **search: Search settings that override the run, such as `alpha=0.6`; see
            `SearchSettings`.

    Raises:
        TypeError: If `sources` or `references` is one string.
        ValueError: If there are no lines, or the numbers of sources and references differ.
        InputError: If `path` is not a trained run, or a reference is too long to be scored.
        SettingsError: See `diagnosis_settings`.

    Example:

    >>> diagnosis = diagnose("runs/ende", ["A dog runs."], ["Ein Hund rennt."])  # doctest: +SKIP
    >>> diagnosis.lines[0].verdict, diagnosis.totals["search_errors"]  # doctest: +SKIP
    ('model error', 0)

    Reference:
        Stahlberg and Byrne, "On NMT Search Errors and Model Errors: Cat Got Your Tongue?",
        EMNLP 2019, https://arxiv.org/abs/1908.10090
    """
    check_pairs(sources=sources, references=references)
    if not sources:
        raise ValueError("received no sources, expected at least one.")
    run = open_trained_run(path, "translate", which, notice)
    searches = diagnosis_settings(run.settings, beam_sizes, search, notice)
    tokenizers = run.source_tokenizer, run.target_tokenizer
    message = feature_notice(sources, tokenizers[0])
    if message and notice is not None:
        notice(message)
    # Checks the references first, because the searches take much longer.
    check_target_lengths(tokenizers[1].encode(references))
    model = load_models(run, ensemble, which, notice)
    longest = run.settings.data.max_source_length
    translations: dict[int, list[list[Hypothesis]]] = {}
    for beam, settings in searches.items():
        start = time.monotonic()
        translator = Translator(model, *tokenizers, settings, longest)
        translations[beam] = translator.translate(sources)
        if notice is not None:
            seconds = time.monotonic() - start
            notice(f"beam {beam}: {len(sources):,} lines translated in {seconds:.0f} s")
    scorer = LikelihoodScorer(model, *tokenizers, longest)
    return judge(sources, references, translations, scorer, next(iter(searches.values())))
