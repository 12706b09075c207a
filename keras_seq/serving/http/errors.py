"""Error responses to requests of clients."""

from __future__ import annotations


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
