"""`keras-seq generate`: samples text from a language model or a VAE."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import typer

from keras_seq_cli.output import emit, notice
from keras_seq_cli.quiet import import_quietly
from keras_seq_cli.search_options import RERANK_OPTIONS, with_search_options
from keras_seq_cli.shared_options import Ensemble, Which

# Prompts per call of the model, to limit the memory for a large file.
_PROMPTS = 1024


# Omit the options that need a source text. Omit --prefix, because prompts replace it.
@functools.partial(
    with_search_options,
    without=(
        *("coverage_penalty", "min_length_ratio", "max_length_ratio", "prefix"),
        *RERANK_OPTIONS,
    ),
)
def generate(
    run: Annotated[str, typer.Argument(help="Run directory of a language model or a VAE.")],
    prompts: Annotated[
        str | None, typer.Argument(help="File of prompts, one per line; - for stdin.")
    ] = None,
    prompt: Annotated[
        list[str] | None,
        typer.Option(help="Beginning of the text; repeatable; by default an empty prompt."),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(
            min=1, max=1_000_000, help="Number of samples from the prior of a VAE; 1 by default."
        ),
    ] = None,
    code_seed: Annotated[
        int, typer.Option(min=0, help="Random seed of the latent codes of a VAE.")
    ] = 0,
    output_format: Annotated[
        Literal["text", "jsonl"],
        typer.Option("--format", help="text: one text per line; jsonl: one object per text."),
    ] = "text",
    which: Which = "best",
    ensemble: Ensemble = None,
    *,
    search: dict[str, Any],
) -> None:
    """Continue prompts with a language model, or sample texts from a VAE.

    A language model prints --n-best texts for each prompt. Texts are sampled at random with --seed;
    --method beam searches for the most probable texts.
    """
    from keras_seq.run import Run
    from keras_seq.text import check_readable, read_lines

    if prompt and prompts is not None:
        raise typer.BadParameter("received both PROMPTS and --prompt, expected one of them")
    if prompts is not None:
        check_readable(prompts)
    opened = Run.open(run, notice=notice)
    is_vae = opened.settings.task == "vae"
    if not is_vae:
        opened.require_task("language-model")
    opened.require_weights(which)
    # Report invalid settings before the slow import of Keras.
    opened.settings.with_search(search)
    if is_vae:
        for value, option in (
            (prompts, "prompts"),
            (prompt, "--prompt"),
            (ensemble, "--ensemble"),
            (search.get("n_best"), "--n-best"),
        ):
            if value:
                raise typer.BadParameter(f"{option}: not with a VAE, which samples latent codes")
        emit(_samples(run, which, search, count or 1, code_seed, output_format))
        return
    if count is not None:
        raise typer.BadParameter("--count: not with a language model, which has --n-best")
    lines = iter(prompt or [""]) if prompts is None else read_lines(prompts, notice=notice)
    generator = import_quietly("keras_seq.inference.generator").Generator.load(
        run, which=which, ensemble=ensemble or (), notice=notice, **search
    )
    emit(_continuations(generator, lines, output_format))


def _continuations(generator: Any, prompts: Iterator[str], output_format: str) -> Iterator[str]:
    while chunk := list(itertools.islice(prompts, _PROMPTS)):
        for prompt, continuations in zip(chunk, generator.generate(chunk), strict=True):
            for continuation in continuations:
                if output_format == "text":
                    yield continuation.text
                    continue
                line = {
                    "prompt": prompt,
                    "text": continuation.text,
                    "score": continuation.score,
                    "ended": continuation.ended,
                }
                yield json.dumps(line, ensure_ascii=False)


def _samples(
    run: str, which: str, search: dict[str, Any], count: int, seed: int, output_format: str
) -> Iterator[str]:
    """Samples latent codes from the prior of a VAE and yields the decoded texts."""
    autoencoder = import_quietly("keras_seq.inference.autoencoder").Autoencoder.load(
        run, which=which, notice=notice, **search
    )
    for text in autoencoder.sample(count, seed):
        yield text if output_format == "text" else json.dumps({"text": text}, ensure_ascii=False)
