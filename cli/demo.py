"""`keras-seq demo`: trains a model on generated text and scores its translations."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from keras_seq_cli.output import emit, notice
from keras_seq_cli.quiet import import_quietly
from keras_seq_cli.shared_options import Overwrite, SetSettings

# Number of example translations to print.
_EXAMPLES = 10


def demo(
    directory: Annotated[str, typer.Argument(help="Run directory to create.")] = "runs/demo",
    set_: SetSettings = None,
    overwrite: Overwrite = False,
) -> None:
    """Train a model on generated text, then translate and score a test set.

    The model learns to convert dates in about 40 locales to ISO 8601.
    """
    from keras_seq.preparation.demo import prepare_demo
    from keras_seq.process.devices import check_backend
    from keras_seq.process.threads import configure_training_threads

    check_backend(os.environ.get("KERAS_BACKEND"))
    configure_training_threads()
    run, test = prepare_demo(directory, overrides=set_, overwrite=overwrite, notice=notice)

    import_quietly("keras_seq.training").train(run.settings, run, notice=notice)
    sources, references = [pair[0] for pair in test], [pair[1] for pair in test]
    model = import_quietly("keras_seq.run.models").load_model(run)
    evaluation = import_quietly("keras_seq.evaluation.evaluating").evaluate_model(
        run, model, sources, references
    )
    outputs = evaluation.outputs
    width = max(len(source) for source in sources[:_EXAMPLES])
    examples = list(zip(sources, outputs, references, strict=True))[:_EXAMPLES]
    emit(
        f"{source:{width}}  ->  {output}"
        + ("" if output == reference else f"  (expected {reference})")
        for source, output, reference in examples
    )
    emit(metric.text for metric in evaluation.metrics.values())
    correct = sum(map(str.__eq__, outputs, references))
    emit([f"{correct} of {len(test)} unseen dates are exactly right ({correct / len(test):.1%})"])
    page = import_quietly("keras_seq.analysis.reports.reporting").report_model(
        run, model, sources, references, name="unseen dates", evaluation=evaluation
    )
    page.save(run.path / "report.html")
    notice(f"{run.path / 'report.html'} written: curves, scores, wrong dates and attention")
    notice(f'now try: keras-seq translate {directory} "{sources[0]}"')
