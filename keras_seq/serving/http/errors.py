"""Error responses to requests of clients."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

# HTTP status of a run that reaches its time limit, as in TensorFlow Serving.
TOO_SLOW = 504


class RequestError(ValueError):
    """Error response to a request, with the HTTP status `code` and additional `headers`.

    The client receives the message, so the message is one line without details of the server.
    """

    def __init__(
        self, message: str, code: int = 400, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.headers = headers


def error_response(message: str, code: int, headers: dict[str, str] | None = None) -> Response:
    """Returns an error in the JSON of TensorFlow Serving."""
    # A name from the path may contain unpaired surrogates.
    text = message.encode("utf-8", "replace").decode()
    return JSONResponse({"error": text}, code, headers)


def stopping_error() -> RequestError:
    """Returns the error for requests that the server does not finish before it stops."""
    return RequestError("the server is stopping", 503, {"Connection": "close"})
