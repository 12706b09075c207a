"""`keras-seq generate`: text from a language model."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import typer

from keras_seq_cli.checkpoint_option import Which
from keras_seq_cli.output import emit, notice
from keras_seq_cli.quiet import import_quietly
from keras_seq_cli.search_options import with_search_options

# Prompts that go together, so that a large file takes little memory.
_PROMPTS = 1024


# There is no source that these go by, and prompts are prefixes.
@functools.partial(
    with_search_options,
    without=("coverage_penalty", "min_length_ratio", "max_length_ratio", "prefix"),
)
def generate(
    run: Annotated[
        str, typer.Argument(help="Directory that train made, of a language model or a vae.")
    ],
    prompts: Annotated[
        str | None, typer.Argument(help="File of prompts, one a line; - for stdin.")
    ] = None,
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            help="What a text begins with; may be given again. Without any, nothing.",
        ),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(min=1, max=1_000_000, help="Texts of a vae, each of a code drawn anew; 1."),
    ] = None,
    code_seed: Annotated[
        int, typer.Option(min=0, help="Of a vae: another one draws other codes.")
    ] = 0,
    output_format: Annotated[
        Literal["text", "jsonl"],
        typer.Option("--format", help="A line for each text: the text, or JSON with its score."),
    ] = "text",
    which: Which = "best",
    ensemble: Annotated[
        list[str] | None,
        typer.Option(
            help="Another run, with the same vocabulary, that generates together with this one; "
            "may be given again."
        ),
    ] = None,
    *,
    search: dict[str, Any],
) -> None:
    """Go on from prompts with a language model: --n-best texts for each; or draw from a vae.

    Texts are drawn at random, others by another --seed, unless --method beam looks for the
    likeliest.
    """
    from keras_seq.run import Run
    from keras_seq.text import check_readable, read_lines

    if prompt and prompts is not None:
        raise typer.BadParameter("both --prompt and a file of prompts given: choose one")
    if prompts is not None:
        check_readable(prompts)
    opened = Run.open(run, notice=notice)
    drawn = opened.settings.task == "vae"
    if not drawn:
        opened.require_task("language-model")
    opened.require_weights(which)
    # Looked at before what takes long to import.
    opened.settings.with_search(search)
    if drawn:
        for given, option in (
            (prompts, "prompts"),
            (prompt, "--prompt"),
            (ensemble, "--ensemble"),
            (search.get("n_best"), "--n-best"),
        ):
            if given:
                raise typer.BadParameter(f"{option}: not with a vae, which writes of codes alone")
        emit(_drawn(run, which, search, count or 1, code_seed, output_format))
        return
    if count is not None:
        raise typer.BadParameter("--count: not with a language model, which has --n-best")
    lines = iter(prompt or [""]) if prompts is None else read_lines(prompts, notice=notice)
    generator = import_quietly("keras_seq.inference.generator").Generator.load(
        run, which=which, ensemble=ensemble or (), notice=notice, **search
    )

    def written() -> Iterator[str]:
        while chunk := list(itertools.islice(lines, _PROMPTS)):
            for begin, texts in zip(chunk, generator.generate(chunk), strict=True):
                for found in texts:
                    if output_format == "text":
                        yield found.text
                        continue
                    said = {
                        "prompt": begin,
                        "text": found.text,
                        "score": found.score,
                        "ended": found.ended,
                    }
                    yield json.dumps(said, ensure_ascii=False)

    emit(written())


def _drawn(
    run: str, which: str, search: dict[str, Any], count: int, seed: int, output_format: str
) -> Iterator[str]:
    autoencoder = import_quietly("keras_seq.inference.autoencoder").Autoencoder.load(
        run, which=which, notice=notice, **search
    )
    for text in autoencoder.sample(count, seed):
        yield text if output_format == "text" else json.dumps({"text": text}, ensure_ascii=False)
