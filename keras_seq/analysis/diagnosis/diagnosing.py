"""A diagnosis of a run: its searches, and the verdicts over what they found."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from keras_seq.analysis.diagnosis.settings import diagnosis_settings
from keras_seq.analysis.diagnosis.verdicts import Diagnosis, judge
from keras_seq.inference.hypothesis import Hypothesis
from keras_seq.inference.likelihood import LikelihoodScorer, LongTargetError, check_target_lengths
from keras_seq.inference.translator import Translator
from keras_seq.run import Run
from keras_seq.run.models import load_models

__all__ = ["Diagnosis", "LongTargetError", "diagnose"]


def diagnose(
    path: str | os.PathLike[str],
    sources: Sequence[str],
    references: Sequence[str],
    *,
    beams: Sequence[int] = (5, 10, 50),
    which: str | int = "best",
    ensemble: Sequence[str | os.PathLike[str]] = (),
    notice: Callable[[str], None] | None = None,
    **search: Any,
) -> Diagnosis:
    """Says of each line whether a bad translation is the model's fault or the search's.

    The model is loaded once; every line is translated with every beam.

    Args:
        path: The run directory.
        sources: Lines of text.
        references: As many lines, a good translation of each.
        beams: Beam sizes; the first is judged, the others are looked at beside it.
        which: Checkpoint: `"best"`, `"latest"`, or the step of a stored one.
        ensemble: Directories of other runs with the same vocabularies, that translate
            together with it; its settings count.
        notice: Called with a line when a beam is done, and for each damaged checkpoint
            passed over.
        **search: Settings of the search to use in place of the run's, such as
            `alpha=0.6`; see `SearchSettings`.

    Returns:
        A `Diagnosis`.

    Raises:
        TypeError: If `sources` or `references` is one string.
        ValueError: No lines, or not as many of both.
        InputError: If `path` is not a run with a trained model; as `LikelihoodScorer`.
        SettingsError: As `diagnosis_settings`.

    Example:

    >>> found = diagnose("runs/ende", ["A dog runs."], ["Ein Hund rennt."])  # doctest: +SKIP
    >>> found.lines[0].verdict, found.totals["search_errors"]  # doctest: +SKIP
    ('model error', 0)

    Reference:
        Stahlberg and Byrne, "On NMT Search Errors and Model Errors: Cat Got Your Tongue?",
        EMNLP 2019, https://arxiv.org/abs/1908.10090
    """
    if isinstance(sources, str) or isinstance(references, str):
        raise TypeError("`sources` and `references` must be lists of strings, received a string.")
    if not sources or len(sources) != len(references):
        raise ValueError(
            f"received {len(sources)} sources and {len(references)} references, expected as many "
            "of both and at least one."
        )
    run = Run.open(path, notice=notice)
    searches = diagnosis_settings(run.settings, beams, search, notice)
    run.require_task("translate")
    run.require_weights(which)
    tokenizers = run.source_tokenizer, run.target_tokenizer
    # Before the searches, which take long.
    check_target_lengths(tokenizers[1].encode(references))
    model = load_models(run, ensemble, which, notice)
    longest = run.settings.data.max_source_length
    found: dict[int, list[list[Hypothesis]]] = {}
    for beam, settings in searches.items():
        start = time.monotonic()
        found[beam] = Translator(model, *tokenizers, settings, longest).translate(sources)
        if notice is not None:
            took = time.monotonic() - start
            notice(f"beam {beam}: {len(sources):,} lines translated in {took:.0f} s")
    scorer = LikelihoodScorer(model, *tokenizers, longest)
    return judge(sources, references, found, scorer, next(iter(searches.values())))
