"""Imports of Keras without the optional packages that no command needs.

With the TensorFlow backend, TensorFlow and Keras import PIL, h5py, jax, matplotlib and scipy if
they are installed, for converters, plots and old file formats. On two cores this import takes 3.2
seconds of processor time with these packages and 2.1 seconds without them, and every command waits
for it. Therefore the packages seem to be missing during the import: an entry None in `sys.modules`
makes `import` raise ModuleNotFoundError, as Python documents it. Afterwards they can be imported as
usual.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

OPTIONAL = ("PIL", "h5py", "jax", "matplotlib", "scipy")


@contextlib.contextmanager
def without_optional_packages() -> Iterator[None]:
    """Within this context, optional packages of TensorFlow and Keras seem to be missing.

    Nothing happens with another backend: JAX needs some of these packages itself.
    """
    hidden: list[str] = []
    if _backend() == "tensorflow":
        hidden = [name for name in OPTIONAL if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            if sys.modules.get(name) is None:
                del sys.modules[name]


def _backend() -> str:
    """The backend that Keras will use, from the environment or from its configuration file."""
    if backend := os.environ.get("KERAS_BACKEND"):
        return backend
    home = os.environ.get("KERAS_HOME") or Path("~/.keras").expanduser()
    try:
        return str(json.loads(Path(home, "keras.json").read_text())["backend"])
    except (OSError, ValueError, KeyError, TypeError):
        return "tensorflow"
