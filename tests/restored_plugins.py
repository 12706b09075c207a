"""Takes the plugins of a test away again."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from keras_seq.plugins import loading, registry
from keras_seq.plugins.loading import VARIABLE

PLUGINS = Path(__file__).parents[1] / "examples" / "plugins"


@contextlib.contextmanager
def restored_plugins() -> Iterator[None]:
    """Removes what is registered and imported within this context."""
    variable = os.environ.pop(VARIABLE, None)
    additions = {kind: dict(added) for kind, added in registry._additions.items()}
    imported, modules = dict(loading._imported), set(sys.modules)
    try:
        yield
    finally:
        for now, before in ((registry._additions, additions), (loading._imported, imported)):
            now.clear()
            now.update(before)
        loading.set_import_context(contextlib.nullcontext)
        os.environ.pop(VARIABLE, None)
        if variable is not None:
            os.environ[VARIABLE] = variable
        for name in set(sys.modules) - modules:
            file = getattr(sys.modules[name], "__file__", None) or ""
            # An environment in the folder for temporary files keeps its packages.
            if file.startswith((str(PLUGINS), tempfile.gettempdir())) and not file.startswith(
                sys.prefix
            ):
                del sys.modules[name]
