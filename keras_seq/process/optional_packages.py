"""Speeds up the import of Keras by hiding optional packages that no training needs.

Keras and its backends import the packages in `OPTIONAL` if these are installed. The packages serve
only converters, plots, old file formats and data frames. On two cores, the import of Keras with
TensorFlow takes 6.7 seconds of processor time with the packages and 3.5 seconds without them. An
entry None in `sys.modules` hides a package, because `import` then raises ModuleNotFoundError. After
the import of Keras, the packages can be imported as usual.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

OPTIONAL = ("IPython", "PIL", "h5py", "jax", "matplotlib", "pandas", "scipy", "sklearn")
# Packages in `OPTIONAL` that the other backends need.
_NEEDED = ("jax", "scipy")


@contextlib.contextmanager
def without_optional_packages() -> Iterator[None]:
    """Hides the optional packages of Keras and its backend within this context."""
    needed = () if backend_name() == "tensorflow" else _NEEDED
    hidden = [name for name in OPTIONAL if name not in sys.modules and name not in needed]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            if sys.modules.get(name) is None:
                del sys.modules[name]


def backend_name() -> str:
    """Returns the Keras backend set by the environment or the configuration file of Keras."""
    if backend := os.environ.get("KERAS_BACKEND"):
        return backend
    home = os.environ.get("KERAS_HOME") or Path("~/.keras").expanduser()
    try:
        return str(json.loads(Path(home, "keras.json").read_text())["backend"])
    except (OSError, ValueError, KeyError, TypeError):
        return "tensorflow"
