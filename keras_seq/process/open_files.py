"""The limit on open files, which sockets count against."""

from __future__ import annotations


def raise_open_file_limit(maximum: int) -> int:
    """Raises the limit on open files to the system's hard limit, but not beyond `maximum`.

    Returns the limit. A limit above `maximum` stays.
    """
    try:
        import resource
    except ImportError:
        # Windows has no such limit.
        return maximum
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= maximum:
        return maximum
    wanted = maximum if hard == resource.RLIM_INFINITY else min(hard, maximum)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        # macOS may refuse a value below its hard limit.
        return soft
    return wanted
