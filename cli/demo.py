"""`keras-seq demo`: the whole way on text that the package makes itself."""

from __future__ import annotations

from typing import Annotated

import typer

from keras_seq_cli.output import emit, notice
from keras_seq_cli.quiet import import_quietly

_SHOWN = 10


def demo(
    directory: Annotated[str, typer.Argument(help="Run directory to make.")] = "runs/demo",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One setting; may be given again."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Delete the run that is there.")
    ] = False,
) -> None:
    """Train, translate and score on embedded text.

    Dates as people write them in some 40 locales become dates in ISO 8601.
    """
    import os

    from keras_seq.preparation.demo import prepare_demo
    from keras_seq.runtime.devices import check_backend
    from keras_seq.runtime.threads import configure_training_threads

    check_backend(os.environ.get("KERAS_BACKEND"))
    configure_training_threads()
    run, test = prepare_demo(directory, overrides=set_, overwrite=overwrite, notice=notice)
    from keras_seq.scoring import score

    import_quietly("keras_seq.training").train(run.settings, run, notice=notice)
    sources, references = [pair[0] for pair in test], [pair[1] for pair in test]
    hypotheses = import_quietly("keras_seq.inference.translator").Translator.load(
        run.path, notice=notice
    )(sources)
    right = sum(found == wanted for found, wanted in zip(hypotheses, references, strict=True))
    width = max(len(source) for source in sources[:_SHOWN])
    emit(
        f"{source:{width}}  ->  {found}" + ("" if found == wanted else f"  (is {wanted})")
        for source, found, wanted in list(zip(sources, hypotheses, references, strict=True))[
            :_SHOWN
        ]
    )
    emit(found.text for found in score(hypotheses, [references]))
    emit([f"{right} of {len(test)} unseen dates exactly right ({right / len(test):.1%})"])
    notice(f'now try: keras-seq translate {directory} "{sources[0]}"')
