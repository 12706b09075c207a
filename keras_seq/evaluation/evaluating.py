"""Evaluation of a trained run on a test set."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from keras_seq.evaluation.baselines import NoTrainingTextError
from keras_seq.evaluation.metrics import check_options, evaluation_metrics
from keras_seq.evaluation.plugin_values import plugin_values
from keras_seq.evaluation.text_values import text_values
from keras_seq.evaluation.values import Baseline, Evaluation, MetricValue, TestSet
from keras_seq.inference.predictor import check_pairs
from keras_seq.run import Run
from keras_seq.run.ensembles import open_ensemble
from keras_seq.run.models import load_ensemble
from keras_seq.settings import TASKS
from keras_seq.text import split_language, with_languages

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
    to: str | None = None,
    notice: Callable[[str], None] | None = None,
    **search: Any,
) -> Evaluation:
    """Evaluates a run on a test set: decodes once and computes all metrics of its task.

    The same metrics of a baseline tell if the model is better than none. A baseline that counts the
    training text is missing for a run without that text. The baseline is the source itself for
    `translate`, the most frequent label for `classify`, the most frequent tag of each word for
    `tag`, the frequency of each token for `language-model`, the most frequent text for `speech`,
    and one detection in each recording for `wake-word`.

    | task | sources | references | metrics |
    |---|---|---|---|
    | `translate` | lines | translations | exact, cer, wer, chrf, bleu, ter |
    | `language-model` | "" each | texts | perplexity, bits_per_character |
    | `classify` | texts | labels | accuracy, macro_f1, calibration_error |
    | `tag` | texts | tags with spaces between | accuracy, macro_f1, entity_f1 |
    | `speech` | paths of recordings | texts | wer, cer, exact |
    | `wake-word` | paths of recordings | spans | f1, false_alarms |

    Args:
        path: The run directory.
        sources: Inputs, one for each example.
        references: The expected output of each source.
        which: Checkpoint: `"best"`, `"latest"`, or the step of a stored checkpoint.
        ensemble: Other run directories with the same vocabularies. The models form an ensemble
            with the model at `path`; only for tasks `translate` and `language-model`.
        metrics: Names from the table. If empty, all metrics of the task, beginning with the metric
            that chose the best checkpoint.
        tokenize: Tokenizer of BLEU; None for the setting `score.tokenize` of the run.
        confidence: Adds 95 % confidence intervals by bootstrap resampling of lines.
        samples: Number of resamples; 1,000 if None.
        to: The target language of sources without a tag, for a run with several; see
            `Translator.translate`.
        notice: Receives a line for each damaged checkpoint that is skipped; by default each is a
            warning.
        **search: Search settings that replace those of the run, such as `beam_size=1`; for labels
            only `batch_size`. The best translation of each line is scored.

    Raises:
        TypeError: If `sources` or `references` is one string.
        ValueError: If there are no examples, or not as many sources as references.
        InputError: If `path` is not a run with a trained model, or its task does not have the
            metric or option.
        SettingsError: If a setting of the search is unknown or out of bounds.

    Example:

    >>> evaluation = evaluate("runs/ende", ["A dog runs."], ["Ein Hund rennt."])  # doctest: +SKIP
    >>> evaluation.metrics["chrf"].value  # doctest: +SKIP
    100.0
    """
    check_pairs(sources=sources, references=references)
    if not sources:
        raise ValueError("received no sources, expected at least one.")
    run = Run.open(path, notice=notice)
    check_options(run, tokenize=tokenize, ensemble=ensemble, search=search)
    sources = with_languages(sources, run.languages, to)
    run.require_weights(which)
    model = load_ensemble(open_ensemble(run, ensemble, which, notice), which)
    return evaluate_model(
        run,
        model,
        sources,
        references,
        metrics=metrics,
        tokenize=tokenize,
        confidence=confidence,
        samples=samples,
        **search,
    )


def evaluate_model(
    run: Run,
    model: Any,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    metrics: Sequence[str] = (),
    tokenize: str | None = None,
    confidence: bool = True,
    samples: int | None = None,
    **search: Any,
) -> Evaluation:
    """Evaluates a model that is loaded from a run; see `evaluate`."""
    check_pairs(sources=sources, references=references)
    if not sources:
        raise ValueError("received no sources, expected at least one.")
    check_options(run, tokenize=tokenize, search=search)
    names = evaluation_metrics(run, metrics, list(zip(sources, references, strict=True)))
    resamples = (samples or _SAMPLES) if confidence else None
    task = TASKS[run.settings.task]
    own = [name for name in names if name in task.metrics]
    # A task computes at least one metric of its own.
    computed = own or task.metrics[:1]
    test = TestSet(run, model, sources, references, computed, tokenize, resamples, search)
    # Computed first, so that a damaged training text is an error at once.
    baseline, no_baseline = _baseline(test)
    values, outputs, num_truncated = task.evaluate(test)
    if others := [name for name in names if name not in own]:
        values |= plugin_values(outputs or (), references, others, resamples)
    values = {name: values[name] for name in names}
    by_language = _by_language(test, outputs or ()) if run.languages else {}
    step = run.loaded_step or 0
    return Evaluation(
        step, len(sources), values, outputs, num_truncated, baseline, by_language, no_baseline
    )


def _baseline(test: TestSet) -> tuple[Baseline | None, str]:
    """Returns the baseline of a task and "", or None and the reason for its absence."""
    try:
        baseline = TASKS[test.run.settings.task].baseline(test)
    except NoTrainingTextError as error:
        return None, str(error)
    return baseline, "" if baseline else f"task {test.run.settings.task!r} has none"


def _by_language(test: TestSet, outputs: Sequence[str]) -> dict[str, dict[str, MetricValue]]:
    """Computes the metrics of the lines of each target language; of one language alone, nothing."""
    languages = [split_language(source)[0] or "" for source in test.sources]
    known = sorted(set(languages) - {""})
    tokenize = test.tokenize or test.run.settings.score.tokenize
    result = {}
    for name in known if len(known) > 1 else ():
        rows = [row for row, language in enumerate(languages) if language == name]
        found = [outputs[row] for row in rows]
        references = [test.references[row] for row in rows]
        result[name] = text_values(found, references, test.metrics, tokenize, test.samples)
    return result
