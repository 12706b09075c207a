"""Errors of a request."""

from __future__ import annotations


class RequestError(ValueError):
    """A request that cannot be answered; `code` is the HTTP status.

    The client receives the message, so the message is one line without details of the server.
    """

    def __init__(self, message: str, code: int = 400) -> None:
        super().__init__(message)
        self.code = code
