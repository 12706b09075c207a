"""`keras-seq rerank`: translates with the help of a reverse model and a language model."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from keras_seq_cli.output import check_writable, emit, notice
from keras_seq_cli.quiet import import_quietly
from keras_seq_cli.search_options import RERANK_OPTIONS, with_search_options
from keras_seq_cli.shared_options import Output, Which

if TYPE_CHECKING:
    from keras_seq.inference.noisy_channel import NoisyChannelTranslator

# Lines per call of the models, to limit the memory for a large file.
_LINES = 256


# Omit --n-best, because each line gets one translation.
@functools.partial(with_search_options, without=("n_best", *RERANK_OPTIONS))
def rerank(
    run: Annotated[str, typer.Argument(help="Run directory that translates.")],
    text: Annotated[str, typer.Argument(help="File of sentences, one per line; - for stdin.")],
    reverse: Annotated[
        str,
        typer.Option(help="Run that translates in the opposite direction, to score the source."),
    ],
    language_model: Annotated[
        str | None, typer.Option(help="Run of a language model of the target language.")
    ] = None,
    reverse_weight: Annotated[
        float | None, typer.Option(min=0, help="Weight of --reverse; tuned by default.")
    ] = None,
    language_model_weight: Annotated[
        float | None, typer.Option(min=0, help="Weight of --language-model; tuned by default.")
    ] = None,
    metric: Annotated[
        Literal["auto", "bleu", "chrf", "exact"],
        typer.Option(help="Metric that the weights are tuned by; auto: what chose the checkpoint."),
    ] = "auto",
    candidates: Annotated[
        int, typer.Option(min=2, max=100, help="Translations of a line to choose from.")
    ] = 16,
    output: Output = None,
    which: Which = "best",
    *,
    search: dict[str, Any],
) -> None:
    """Choose among translations by a reverse model and a language model (noisy channel).

    Without weights, those with the best score on the validation text of RUN are taken.
    """
    from keras_seq.run import Run
    from keras_seq.text import check_readable, read_lines

    given = (reverse_weight, language_model_weight)
    if language_model is None and language_model_weight is not None:
        raise typer.BadParameter("needs --language-model", param_hint="'--language-model-weight'")
    expected = given if language_model is not None else given[:1]
    if any(one is None for one in expected) and any(one is not None for one in expected):
        raise typer.BadParameter("expected both weights, or none", param_hint="'--reverse-weight'")
    check_readable(text)
    if output is not None:
        check_writable(output)
    opened = Run.open(run, notice=notice)
    opened.require_task("translate")
    opened.require_weights(which)
    is_tuned = reverse_weight is None
    validation = opened.valid_lines() if is_tuned else None
    module = import_quietly("keras_seq.inference.noisy_channel")
    translator = module.NoisyChannelTranslator.load(
        run,
        reverse=reverse,
        language_model=language_model,
        weights=None if is_tuned else module.ChannelWeights(*(one or 0.0 for one in given)),
        candidates=candidates,
        which=which,
        notice=notice,
        **search,
    )
    if validation is not None:
        _tune(translator, *validation, metric)
    lines = read_lines(text, notice=notice)
    with _opened(output) as write:
        while chunk := list(itertools.islice(lines, _LINES)):
            write(translator(chunk))


def _tune(
    translator: NoisyChannelTranslator, sources: list[str], references: list[str], metric: str
) -> None:
    from keras_seq.scoring import choose_metric

    notice(f"choosing the weights on {len(sources):,} validation lines")
    if metric == "auto":
        metric = choose_metric(references).metric
        metric = metric if metric in ("bleu", "chrf", "exact") else "chrf"
    tuned = translator.tune(sources, references, metric=metric)
    weights = f"--reverse-weight {tuned.weights.reverse:g}"
    if translator.has_language_model:
        weights += f" --language-model-weight {tuned.weights.language_model:g}"
    notice(
        f"{len(sources):,} validation lines: {metric} {tuned.before:.2f} by the run alone, "
        f"{tuned.after:.2f} with {weights}"
    )


@contextlib.contextmanager
def _opened(output: str | None) -> Iterator[Any]:
    from keras_seq.storage import atomic_lines

    if output is None:
        yield emit
        return
    with atomic_lines(Path(output)) as write_line:
        yield lambda lines: [write_line(line) for line in lines]
