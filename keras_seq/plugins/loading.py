"""Imports plugins: files, modules, and entry points of installed packages."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.machinery import ModuleSpec
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from keras_seq.plugins.registry import PluginError, importing

# Processes that this process starts import the plugins in this environment variable, too.
VARIABLE = "KERAS_SEQ_PLUGINS"
# Packages name their plugins in this group of entry points.
GROUP = "keras_seq.plugins"
_imported: dict[str, str] = {}
_import_context: Callable[[], AbstractContextManager[Any]] = nullcontext


def import_plugin(name: str) -> None:
    """Imports a plugin, so that the names that it registers can be used.

    Also sets the environment variable `KERAS_SEQ_PLUGINS`, which the processes read that this
    process starts.

    Args:
        name: A Python file that ends in `.py`; or the name of an entry point of an installed
            package in the group `keras_seq.plugins`; or the name of a module.

    Raises:
        PluginError: If there is no such plugin, it raises an error, one of its names is taken, or
            another plugin or module has its name.
    """
    is_file = name.endswith(".py")
    if is_file:
        name = str(Path(name).resolve())
    # A run names its plugins, but not the folders of a machine.
    short = Path(name).name if is_file else name
    if _imported.get(short) == name:
        return
    if short in _imported:
        raise PluginError(f"plugin {short}: two files have this name: rename one of them")
    importing.append(short)
    try:
        _import_file(Path(name)) if is_file else _import_installed(name)
    except PluginError as error:
        raise PluginError(f"plugin {short}: {error}") from None
    except Exception as error:
        raise PluginError(f"plugin {short}: {_place(error)}{_summary(error)}") from error
    finally:
        importing.pop()
    _imported[short] = name
    os.environ[VARIABLE] = os.pathsep.join(_imported.values())


def import_plugins_of_environment() -> None:
    """Imports the plugins in the environment variable `KERAS_SEQ_PLUGINS`."""
    names = [name for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
    if importing or set(names) <= set(_imported.values()):
        return
    with _import_context():
        for name in names:
            import_plugin(name)


def set_import_context(context: Callable[[], AbstractContextManager[Any]]) -> None:
    """Sets a context in which plugins of the environment are imported, such as one that is quiet.

    Plugins are imported when settings are first read, after the choice of backend and devices.
    """
    global _import_context
    _import_context = context


def _import_file(path: Path) -> None:
    if not path.is_file():
        raise PluginError(f"no such file: {path}")
    if not path.stem.isidentifier():
        raise PluginError(f"expected the name of a Python module, received {path.stem!r}")
    other = _file_of(path.stem)
    if other is not None and other != path:
        raise PluginError(f"a module has the name {path.stem!r} already: rename the file")
    if path.stem in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise PluginError("not a Python file")
    module = importlib.util.module_from_spec(spec)
    # Settings name classes by module, and saved objects are found there.
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise


def _file_of(module: str) -> Path | None:
    """Returns the file of a module that was imported or can be; None if there is no module."""
    spec = _spec(module)
    return None if spec is None else Path(spec.origin or "").resolve()


def _spec(module: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None


def _import_installed(name: str) -> None:
    entries = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name in entries:
        entries[name].load()
        return
    if _spec(name) is None:
        others = f" (installed plugins: {', '.join(sorted(entries))})" if entries else ""
        raise PluginError(f"no installed plugin and no module has this name{others}")
    importlib.import_module(name)


def _summary(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


def _place(error: Exception) -> str:
    """Returns the file and line of the innermost code of the plugin, as "my.py:12: "."""
    name = importing[-1]
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).name == name]
    if isinstance(error, SyntaxError):
        lines = [error.lineno]
    return f"line {lines[-1]}: " if lines and lines[-1] else ""
