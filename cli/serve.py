"""`keras-seq serve`: serves an exported SavedModel over HTTP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from keras_seq_cli.output import notice
from keras_seq_cli.quiet import fast_import, without_log_lines
from keras_seq_cli.shared_options import Trust


def serve(
    directory: Annotated[
        str, typer.Argument(help="Directory of the versions, made by keras-seq export.")
    ],
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0: all addresses.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0: any free port.")
    ] = 8501,
    model_name: Annotated[
        str | None, typer.Option(help="Model name in URLs; by default the name of the directory.")
    ] = None,
    batch_size: Annotated[
        int, typer.Option(min=1, max=4096, help="Maximum number of texts per batch.")
    ] = 32,
    batch_delay_ms: Annotated[
        float, typer.Option(min=0, max=10_000, help="Milliseconds a text may wait for others.")
    ] = 5.0,
    queue_size: Annotated[
        int,
        typer.Option(
            min=1, help="Maximum number of waiting texts; with more, the server answers 429."
        ),
    ] = 256,
    threads: Annotated[
        int | None,
        typer.Option(min=1, max=256, help="Number of parallel batches; by default one per core."),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Further name that clients may call this server by, without a port; repeatable. "
            "On 127.0.0.1, only localhost, 127.0.0.1 and [::1] are allowed by default."
        ),
    ] = None,
    max_connections: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Maximum number of open connections; with more, the server answers 503. By "
            "default, it follows from the limit on open files.",
        ),
    ] = None,
    trust: Trust = False,
) -> None:
    """Serve a SavedModel with TensorFlow Serving's REST API and a demo page.

    A SavedModel is a program that may contain any operations. Without --trust, a SavedModel with
    operations that keras-seq never exports is rejected.
    """
    from keras_seq.serving.http.server import Options, Server

    server = Server(
        Options(
            Path(directory),
            host=host,
            port=port,
            model_name=model_name,
            batch_size=batch_size,
            batch_delay_ms=batch_delay_ms,
            queue_size=queue_size,
            threads=threads,
            trust=trust,
            allowed_hosts=tuple(allowed_host or ()),
            max_connections=max_connections,
        ),
        notice,
    )
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with without_log_lines(), fast_import():
        server.import_tensorflow()
    raise typer.Exit(server.run())
