"""Errors of a request."""

from __future__ import annotations


class RequestError(ValueError):
    """A request that cannot be answered; `code` and `headers` are those of the response.

    The client receives the message, so the message is one line without details of the server.
    """

    def __init__(
        self, message: str, code: int = 400, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.headers = headers
