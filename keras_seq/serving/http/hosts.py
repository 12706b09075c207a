"""The names by which clients may call the server."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from keras_seq.text import InputError

_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]/@\s]+)(:[0-9]*)?")
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


def allowed_hosts(host: str, address: str, names: Iterable[str]) -> frozenset[str] | None:
    """Returns the names that the header `Host` may contain, or None for any name.

    Args:
        host: The value of `--host`.
        address: The IP address that the server listens on. On a loopback address, only known names
            are allowed.
        names: Further names, the values of `--allowed-host`. On other addresses, they switch the
            check on.

    Raises:
        InputError: If one of `names` is not the name of a host.
    """
    for name in names:
        if host_name(name) != name.lower().rstrip("."):
            raise InputError(
                f"--allowed-host: received {name!r}, expected a name or an address without a port, "
                "such as translate.example or [::1]"
            )
    if not names and not ipaddress.ip_address(address.partition("%")[0]).is_loopback:
        return None
    own = f"[{host}]" if ":" in host else host
    return frozenset(name.lower().rstrip(".") for name in (*_LOOPBACK_NAMES, own, *names))


def host_name(host: str) -> str | None:
    """Returns the name in the header `Host`, without the port, or None if it is not valid."""
    match = _AUTHORITY.fullmatch(host.lower())
    return match[1].rstrip(".") if match else None
