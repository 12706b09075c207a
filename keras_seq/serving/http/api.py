"""HTTP routes: TensorFlow Serving's REST API, health, metrics, and the demo page."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
import time
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keras_seq.serving.http import sounds, tensors
from keras_seq.serving.http.batching import Batcher
from keras_seq.serving.http.bodies import Bodies
from keras_seq.serving.http.errors import RequestError, error_response, stopping_error
from keras_seq.serving.http.guard import RequestGuard
from keras_seq.serving.http.limits import Limits
from keras_seq.serving.http.metrics import CONTENT_TYPE, Metrics
from keras_seq.serving.http.page import PAGE_HEADERS, page

if TYPE_CHECKING:
    from keras_seq.serving.http.model import LoadedModel
    from keras_seq.serving.http.watcher import ModelWatcher

_MODEL_PATH = r"/v1/models/([^/:]+)(?:/versions/(\d+)|/labels/([^/:]+))?"
_PREDICT = re.compile(rf"{_MODEL_PATH}:(classify|regress|predict)")
_STATUS = re.compile(rf"{_MODEL_PATH}(/metadata)?")
# Metrics label of each path. Labels for arbitrary paths would let clients exhaust the memory.
_ENDPOINTS = {"/": "page", "/health": "health", "/ready": "ready", "/metrics": "metrics"}
# The inputs of a signature that takes recordings.
_SOUNDS = {"samples", "lengths"}
# HTTP status if the client closes the connection, as in nginx and TensorFlow Serving.
_CLIENT_GONE = 499


@dataclass(frozen=True)
class Api:
    """The HTTP application of the server.

    Status codes and error messages follow https://www.tensorflow.org/tfx/serving/api_rest.
    `hosts` is a result of `allowed_hosts`. `ready` returns True while the server accepts new
    requests.
    """

    name: str
    watcher: ModelWatcher
    batcher: Batcher
    metrics: Metrics
    bodies: Bodies
    limits: Limits
    hosts: frozenset[str] | None
    ready: Callable[[], bool]

    def app(self) -> ASGIApp:
        routes = [
            _ExactRoute("/", self._page),
            _ExactRoute("/health", self._health),
            _ExactRoute("/ready", self._ready),
            _ExactRoute("/metrics", self._metrics),
            Route("/v1/{rest:path}", self._rest, methods=["GET", "POST"]),
        ]
        handlers: dict[Any, Any] = {HTTPException: _http_error, Exception: _internal_error}
        app = Starlette(routes=routes, exception_handlers=handlers)
        return _MetricsMiddleware(RequestGuard(app, self.hosts), self.metrics)

    async def _page(self, request: Request) -> Response:
        return Response(page(self.name), media_type="text/html", headers=PAGE_HEADERS)

    async def _health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _ready(self, request: Request) -> Response:
        if self.ready():
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "stopping"}, 503)

    async def _metrics(self, request: Request) -> Response:
        return Response(self.metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    async def _rest(self, request: Request) -> Response:
        path = request.scope["path"]
        try:
            if request.method == "POST" and (match := _PREDICT.fullmatch(path)):
                return await self._predict(request, *match.groups())
            if request.method in ("GET", "HEAD") and (match := _STATUS.fullmatch(path)):
                name, version, label, metadata = match.groups()
                if metadata:
                    return self._metadata(self._model(name, version, label))
                return self._states(name, version, label)
        except RequestError as error:
            return error_response(str(error), error.code, error.headers)
        except ClientDisconnect:
            return Response(status_code=_CLIENT_GONE)
        return error_response(f"Malformed request: {request.method} {path[:200]}", 400)

    def _model(self, name: str, version: str | None, label: str | None) -> LoadedModel:
        if name != self.name:
            raise RequestError(f"Servable not found for request: Latest({name})", 404)
        model = self.watcher.current
        if label is not None:
            raise RequestError(f"Unrecognized servable version label: {label}")
        if version is not None and _number(version) != model.version:
            raise RequestError(f"Servable not found for request: Specific({name}, {version})", 404)
        return model

    async def _predict(
        self, request: Request, name: str, version: str | None, label: str | None, verb: str
    ) -> Response:
        # Check the name before reading the body. Get the model later, because it may change.
        self._model(name, version, label)
        if verb.lower() != "predict":
            raise RequestError(
                f"Expected {verb.lower()} signature method_name to be "
                f"tensorflow/serving/{verb.lower()}. Was: tensorflow/serving/predict"
            )
        async with self.bodies.receive(request) as body:
            model = self._model(name, version, label)
            # Keep the model loaded, even if a newer version replaces it before the run starts.
            model.hold()
            try:
                answer = self._answer(model, body)
                # The text is not needed once it is parsed.
                del body
                response = await _unless_gone(request, answer)
            finally:
                model.release()
        return Response(status_code=_CLIENT_GONE) if response is None else response

    async def _answer(self, model: LoadedModel, body: bytes) -> Response:
        """Parses a request, runs the model and returns the outputs."""
        async with contextlib.AsyncExitStack() as held:
            inputs, by_row, signature_name = await self._inputs(model, body, held)
            del body
            outputs = await self.batcher.run(model, signature_name, inputs)
        return Response(
            tensors.write_outputs(outputs, by_row),
            media_type="application/json",
            headers={"Model-Version": str(model.version)},
        )

    async def _inputs(
        self, model: LoadedModel, body: bytes, held: contextlib.AsyncExitStack
    ) -> tuple[dict[str, np.ndarray], bool, str]:
        """Returns the inputs of a request, True if they are rows, and the name of the signature.

        Decoded recordings count as held until `held` is closed.
        """
        size, parse = len(body), self.bodies.parse
        document = await parse(size, tensors.parse_body, body, self.limits)
        signature_name = tensors.signature_name(document)
        signature = model.signatures.get(signature_name)
        if signature is None:
            raise RequestError(
                f"Serving signature name: {json.dumps(signature_name[:80])} not found in "
                f"signature def; the model's: {', '.join(model.signatures)}"
            )
        if _SOUNDS <= set(signature.inputs) and sounds.has_audio(document):
            found = await parse(size, sounds.read_audio, document, model.sample_rate, self.limits)
            inputs, by_row = await held.enter_async_context(self.bodies.decode(found)), found.by_row
        else:
            inputs, by_row = await parse(size, tensors.read_inputs, document, signature)
            model.check_languages(inputs)
        return inputs, by_row, signature_name

    def _states(self, name: str, version: str | None, label: str | None) -> Response:
        if name != self.name:
            raise RequestError(f"Could not find any versions of model {name}", 404)
        if label is not None:
            raise RequestError(f"Unrecognized servable version label: {label}")
        states = self.watcher.states
        if version is not None:
            states = {n: state for n, state in states.items() if n == _number(version)}
            if not states:
                raise RequestError(f"Could not find version {version} of model {name}", 404)
        statuses = [
            {
                "version": str(number),
                "state": state.state,
                "status": {
                    "error_code": "UNKNOWN" if state.error else "OK",
                    "error_message": state.error,
                },
            }
            for number, state in states.items()
        ]
        return JSONResponse({"model_version_status": statuses})

    def _metadata(self, model: LoadedModel) -> Response:
        spec = {"name": self.name, "signature_name": "", "version": str(model.version)}
        metadata = {"signature_def": {"signature_def": model.definitions}}
        return JSONResponse({"model_spec": spec, "metadata": metadata})


class _ExactRoute(Route):
    """A route of one path. A plain `Route` also takes the path with a newline behind it."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return super().matches(scope) if scope["path"] == self.path else (Match.NONE, {})


def _number(digits: str) -> int:
    if len(digits) > 18:
        raise RequestError("Failed to convert version to numeric.")
    return int(digits)


async def _http_error(request: Request, error: HTTPException) -> Response:
    if error.status_code == 404:
        return error_response("Not found; the API begins with /v1/models/", 404)
    headers = dict(error.headers) if error.headers else None
    return error_response(error.detail, error.status_code, headers)


async def _internal_error(request: Request, error: Exception) -> Response:
    return error_response("internal error; see the log of the server", 500)


async def _unless_gone(request: Request, work: Coroutine[Any, Any, Response]) -> Response | None:
    """Returns the result of `work`. If the client disconnects, cancels `work` and returns None."""
    working = asyncio.ensure_future(work)
    # After the body, `receive` returns only when the client has disconnected.
    disconnected = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait((working, disconnected), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, disconnected):
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task


class _MetricsMiddleware:
    """Counts and times requests, and logs unexpected errors in one line."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, code = time.perf_counter(), 0

        async def send_and_record(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_and_record)
        except asyncio.CancelledError:
            # The time for open requests is over, because the server stops.
            if code == 0:
                error = stopping_error()
                response = error_response(str(error), error.code, error.headers)
                await response(scope, receive, send_and_record)
        except Exception as error:
            # The exception ends here, because Starlette has already sent the error response.
            where = traceback.extract_tb(error.__traceback__)[-1]
            print(  # noqa: T201
                f"internal error: {type(error).__name__}: {' '.join(str(error).split())[:300]} "
                f"({where.filename}:{where.lineno})",
                file=sys.stderr,
                flush=True,
            )
        finally:
            endpoint = _ENDPOINTS.get(scope["path"], "other")
            if scope["path"].startswith("/v1/"):
                endpoint = "predict" if scope["method"] == "POST" else "status"
            self._metrics.request(endpoint, code, time.perf_counter() - start)
