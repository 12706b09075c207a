"""Runs a model on a test set and scores what it writes."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from keras_seq.evaluation.label_values import label_values
from keras_seq.evaluation.metrics import check_options, evaluation_metrics, search_of_one
from keras_seq.evaluation.resampling import SEED, resampled
from keras_seq.evaluation.values import Evaluation, MetricValue
from keras_seq.inference.classifier import Classifier
from keras_seq.inference.hypothesis import best_texts
from keras_seq.inference.likelihood import LikelihoodScorer, perplexity_of
from keras_seq.inference.tagger import Tagger
from keras_seq.inference.translator import Translator
from keras_seq.run import Run
from keras_seq.run.models import load_ensemble, open_ensemble
from keras_seq.scoring import Comparison, choose_bleu_tokenizer, scores_by_name
from keras_seq.text import InputError, words_of

__all__ = ["evaluate"]

_SAMPLES = 1000


def evaluate(
    path: str | os.PathLike[str],
    sources: Sequence[str],
    references: Sequence[str],
    *,
    which: str | int = "best",
    ensemble: Sequence[str | os.PathLike[str]] = (),
    metrics: Sequence[str] = (),
    tokenize: str | None = None,
    confidence: bool = True,
    samples: int | None = None,
    notice: Callable[[str], None] | None = None,
    **search: Any,
) -> Evaluation:
    """Evaluates a run on a test set: decodes once and computes all metrics of its task.

    | task | sources | references | metrics |
    |---|---|---|---|
    | `translate` | lines | translations | exact, cer, wer, chrf, bleu, ter |
    | `language-model` | "" each | texts | perplexity |
    | `classify` | texts | labels | accuracy, macro_f1 |
    | `tag` | texts | tags with spaces between | accuracy, macro_f1, entity_f1 |

    Args:
        path: The run directory.
        sources: Inputs, one for each example.
        references: What the run should write for each of them.
        which: Checkpoint: `"best"`, `"latest"`, or the step of a stored one.
        ensemble: Directories of other runs with the same vocabularies, whose probabilities are
            averaged with those of this run. Of `translate` and `language-model`.
        metrics: Names from the table; none for all, the one that chose the best checkpoint first.
        tokenize: Tokenizer of BLEU; None is that of the run's `score.tokenize`.
        confidence: Whether to add 95 % confidence intervals by bootstrap resampling of lines.
        samples: Number of resamples; 1,000 if None.
        notice: Called with a line for each damaged checkpoint that is skipped; by default it is
            a warning.
        **search: Settings of the search instead of the run's, such as `beam_size=1`; of a run
            with labels, `batch_size`. The best translation of each line is scored.

    Returns:
        An `Evaluation`.

    Raises:
        TypeError: If `sources` or `references` is one string.
        ValueError: If there are no examples, or not as many sources as references.
        InputError: If `path` is not a run with a trained model, or its task does not have the
            metric or option.
        SettingsError: If a setting of the search is unknown or out of bounds.

    Example:

    >>> found = evaluate("runs/ende", ["A dog runs."], ["Ein Hund rennt."])  # doctest: +SKIP
    >>> found.metrics["chrf"].value  # doctest: +SKIP
    100.0
    """
    if isinstance(sources, str) or isinstance(references, str):
        raise TypeError("`sources` and `references` must be lists of strings, received a string.")
    if not sources or len(sources) != len(references):
        raise ValueError(
            f"received {len(sources)} sources and {len(references)} references, expected as many "
            "of both and at least one."
        )
    run = Run.open(path, notice=notice)
    examples = list(zip(sources, references, strict=True))
    check_options(run, tokenize=tokenize, ensemble=ensemble, search=search)
    names = evaluation_metrics(run, metrics, examples)
    run.require_weights(which)
    resamples = (samples or _SAMPLES) if confidence else None
    model = load_ensemble(open_ensemble(run, ensemble, which, notice), which)
    outputs: tuple[str, ...] | None = None
    cut = 0
    if run.settings.task == "translate":
        outputs, cut = _translations(run, model, sources, search)
        tokenize = tokenize or _tokenizer(run, references)
        found = _text_values(outputs, references, names, tokenize, resamples)
    elif run.settings.task == "language-model":
        found = _perplexity(run, model, references, resamples)
    else:
        outputs, cut = _labels(run, model, sources, search)
        # A label may have spaces in it; tags are separated by them.
        split = words_of if run.settings.task == "tag" else (lambda label: [label])
        truth, given = ([split(line) for line in side] for side in (references, outputs))
        if not any(truth):
            raise InputError("no words with tags, there is nothing to evaluate")
        found = label_values(truth, given, names, resamples)
    return Evaluation(run.loaded_step or 0, len(examples), found, outputs, cut)


def _translations(
    run: Run, model: Any, sources: Sequence[str], search: Mapping[str, Any]
) -> tuple[tuple[str, ...], int]:
    settings = run.settings.with_search(search_of_one(search))
    translator = Translator(
        model,
        run.source_tokenizer,
        run.target_tokenizer,
        settings.search,
        settings.data.max_source_length,
    )
    found = translator.translate(sources)
    cut = sum(any(one.truncated for one in hypotheses[:1]) for hypotheses in found)
    return tuple(best_texts(found)), cut


def _tokenizer(run: Run, references: Sequence[str]) -> str:
    """The tokenizer of BLEU that the run's validation would take for this text."""
    chosen = run.settings.score.tokenize
    return choose_bleu_tokenizer(references) if chosen == "auto" else chosen


def _text_values(
    outputs: Sequence[str],
    references: Sequence[str],
    names: Sequence[str],
    tokenize: str | None,
    samples: int | None,
) -> dict[str, MetricValue]:
    scores = scores_by_name(
        outputs,
        [references],
        names,
        confidence=samples is not None,
        samples=samples,
        tokenize=tokenize,
    )
    found = {}
    for name, one in scores.items():
        interval = (one.mean, one.interval) if isinstance(one, Comparison) else ()
        found[name] = MetricValue(one.name, one.value, one.signature, *interval)
    return found


def _labels(
    run: Run, model: Any, sources: Sequence[str], search: Mapping[str, Any]
) -> tuple[tuple[str, ...], int]:
    size = search.get("batch_size")
    if run.settings.task == "tag":
        tagged = Tagger.of_run(run, model, size).tag(sources)
        return tuple(" ".join(one.tags) for one in tagged), 0
    classified = Classifier.of_run(run, model, size).classify(sources)
    return tuple(one.label for one in classified), sum(one.truncated for one in classified)


def _perplexity(
    run: Run, model: Any, texts: Sequence[str], samples: int | None
) -> dict[str, MetricValue]:
    scorer = LikelihoodScorer(
        model, run.source_tokenizer, run.target_tokenizer, run.settings.data.max_source_length
    )
    every = scorer([""] * len(texts), texts)
    totals = np.array([one.total for one in every])
    tokens = np.array([len(one.tokens) for one in every])
    if not tokens.any():
        raise InputError("no text, there is nothing to evaluate")
    signature = f"lines:{len(texts)}|tokens:{tokens.sum()}|end:yes"
    mean = interval = None
    if samples is not None:
        signature += f"|bs:{samples}|seed:{SEED}"

        def metric(counts: np.ndarray) -> float:
            size = int(counts @ tokens)
            return perplexity_of(float(counts @ totals), size) if size else math.inf

        mean, interval = resampled(metric, len(texts), samples)
    value = perplexity_of(float(totals.sum()), int(tokens.sum()))
    return {"perplexity": MetricValue("perplexity", value, signature, mean, interval)}
