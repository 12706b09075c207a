"""Refuses requests that web pages send without the knowledge of the user.

A page of another site can send requests to a server on the same computer. It can also let its own
name point to 127.0.0.1 (DNS rebinding), and then read the responses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keras_seq.serving.http.errors import RequestError, error_response
from keras_seq.serving.http.hosts import host_name

_NOSNIFF = (b"x-content-type-options", b"nosniff")
# A web page can send these types without asking the server. The third such type is not refused:
# `curl -d` sends it, and the clients of TensorFlow Serving may send any type.
_REFUSED_TYPES = (b"text/plain", b"multipart/form-data")


class RequestGuard:
    """ASGI middleware that refuses unknown hosts, requests of foreign pages, and wrong types.

    `hosts` is a result of `allowed_hosts`. All responses get `X-Content-Type-Options: nosniff`.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str] | None) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_without_sniffing(message: Message) -> None:
            if message["type"] == "http.response.start" and _NOSNIFF not in message["headers"]:
                message["headers"] = [*message["headers"], _NOSNIFF]
            await send(message)

        try:
            self._check(scope)
        except RequestError as error:
            response = error_response(str(error), error.code, error.headers)
            await response(scope, receive, send_without_sniffing)
        else:
            await self._app(scope, receive, send_without_sniffing)

    def _check(self, scope: Mapping[str, Any]) -> None:
        headers = dict(scope["headers"])
        if b"transfer-encoding" in headers and b"content-length" in headers:
            # A careless proxy may take a different part of the bytes for the body.
            raise RequestError(
                "received Transfer-Encoding and Content-Length, expected one of them",
                400,
                {"Connection": "close"},
            )
        host = headers.get(b"host", b"").decode("latin-1").lower()
        self._check_host(host)
        if scope["method"] == "POST":
            _check_page(host, headers)
            kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
            if kind in _REFUSED_TYPES:
                raise RequestError(
                    f"Content-Type {kind.decode()} is not JSON; send application/json", 415
                )

    def _check_host(self, host: str) -> None:
        # Browsers always send a host. Some simple clients with HTTP/1.0 do not.
        if self._hosts is None or not host:
            return
        if host_name(host) not in self._hosts:
            raise RequestError(
                f"the host {host[:80]!r} is not served here; the option --allowed-host of "
                "keras-seq serve adds a host"
            )


def _check_page(host: str, headers: Mapping[bytes, bytes]) -> None:
    """Raises RequestError if a page of another origin sent a request."""
    # Browsers set both headers, and pages cannot change them. Browsers send the first one only
    # with HTTPS and to this computer.
    site = headers.get(b"sec-fetch-site")
    origin = headers.get(b"origin")
    if site is not None:
        foreign = site not in (b"same-origin", b"none")
    else:
        # The scheme is not compared, because a proxy in front of the server may add HTTPS.
        foreign = (
            origin is not None and origin.decode("latin-1").lower().partition("://")[2] != host
        )
    if foreign:
        raise RequestError("requests from web pages of other origins are refused", 403)
