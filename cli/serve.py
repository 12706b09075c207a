"""`keras-seq serve`: an exported SavedModel over HTTP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from keras_seq_cli.output import notice
from keras_seq_cli.quiet import without_noise


def serve(
    directory: Annotated[str, typer.Argument(help="Directory of versions that export made.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 for every one.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for a free one.")
    ] = 8501,
    model_name: Annotated[
        str | None, typer.Option(help="The model's name in the URL; the directory's if absent.")
    ] = None,
    max_batch: Annotated[
        int, typer.Option(min=1, max=4096, help="Most sentences that run together.")
    ] = 32,
    batch_delay_ms: Annotated[
        float, typer.Option(min=0, max=10_000, help="Milliseconds a sentence waits for others.")
    ] = 5.0,
    queue_size: Annotated[
        int, typer.Option(min=1, help="Most sentences that wait; over it the answer is 429.")
    ] = 256,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, max=256, help="Batches that run at the same time; one a core if absent."
        ),
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Serve any SavedModel, whatever its graph may do.")
    ] = False,
) -> None:
    """Serve a SavedModel: TensorFlow Serving's REST API, and a page to try it.

    A SavedModel is a program. A version with operations that keras-seq never exports is refused;
    with --trust it is loaded.
    """
    from keras_seq.serving.http.server import Options, Server

    server = Server(
        Options(
            Path(directory),
            host=host,
            port=port,
            model_name=model_name,
            max_batch=max_batch,
            batch_delay_ms=batch_delay_ms,
            queue_size=queue_size,
            threads=threads,
            trust=trust,
        ),
        notice,
    )
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with without_noise():
        server.import_tensorflow()
    raise typer.Exit(server.run())
