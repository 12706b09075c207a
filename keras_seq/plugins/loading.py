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

from keras_seq.plugins.registry import PluginError, importing, summary

# Child processes also import the plugins in this environment variable.
VARIABLE = "KERAS_SEQ_PLUGINS"
# Packages name their plugins in this group of entry points.
GROUP = "keras_seq.plugins"
_imported: dict[str, str] = {}
_import_context: Callable[[], AbstractContextManager[Any]] = nullcontext


def has_plugins() -> bool:
    """Tests if plugins were imported."""
    return bool(_imported)


def import_plugin(name: str) -> None:
    """Imports a plugin, so that the names that it registers can be used.

    Also adds the plugin to the environment variable `KERAS_SEQ_PLUGINS`, so that child processes
    import the plugin, too.

    Args:
        name: A Python file that ends in `.py`; or the name of an entry point of an installed
            package in the group `keras_seq.plugins`; or the name of a module.

    Raises:
        PluginError: If the plugin does not exist, if its code raises an error, if a name that it
            registers is taken, or if another plugin or module has the same name as the plugin.
    """
    is_file = name.endswith(".py")
    if is_file:
        name = str(Path(name).resolve())
    # Runs store only the file name, because folders differ between machines.
    short = Path(name).name if is_file else name
    if _imported.get(short) == name:
        return
    if short in _imported:
        raise PluginError(f"plugin {short}: two files have this name: rename one of them")
    if os.pathsep in name:
        raise PluginError(f"plugin {short}: its path has {os.pathsep!r}: move the file")
    importing.append(short)
    try:
        _import_file(Path(name)) if is_file else _import_installed(name)
    except PluginError as error:
        raise PluginError(f"plugin {short}: {error}") from None
    except (Exception, SystemExit) as error:
        raise PluginError(f"plugin {short}: {_place(error)}{summary(error)}") from error
    finally:
        importing.pop()
    _imported[short] = name
    os.environ[VARIABLE] = os.pathsep.join(dict.fromkeys([*_listed(), name]))


def import_plugins_of_environment() -> None:
    """Imports the plugins in the environment variable `KERAS_SEQ_PLUGINS`."""
    names = _listed()
    if importing or set(names) <= set(_imported.values()):
        return
    with _import_context():
        for name in names:
            import_plugin(name)


def set_import_context(context: Callable[[], AbstractContextManager[Any]]) -> None:
    """Sets the context manager for the import of the plugins in `KERAS_SEQ_PLUGINS`.

    The command line hides log lines of TensorFlow in this way. The plugins are imported when
    settings are first read, after the choice of backend and devices.
    """
    global _import_context
    _import_context = context


def _listed() -> list[str]:
    return [name for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]


def _import_file(path: Path) -> None:
    if not path.is_file():
        raise PluginError(f"no such file: {path}")
    if not path.stem.isidentifier():
        raise PluginError(f"expected the name of a Python module, received {path.stem!r}")
    spec = _spec(path.stem)
    if spec is not None and Path(spec.origin or "").resolve() != path:
        raise PluginError(f"a module has the name {path.stem!r} already: rename the file")
    if path.stem in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise PluginError("not a Python file")
    module = importlib.util.module_from_spec(spec)
    # Settings and saved objects name classes by module.
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise


def _spec(module: str) -> ModuleSpec | None:
    """Returns the specification of a module that was imported or can be; None without one."""
    try:
        return importlib.util.find_spec(module)
    except ModuleNotFoundError as error:
        # A parent package that lacks a dependency is not a missing plugin.
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            return None
        raise
    except ValueError:
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


def _place(error: BaseException) -> str:
    """Returns the line of the plugin's file where an error occurred, as "line 12: ", or ""."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).name == importing[-1]]
    if isinstance(error, SyntaxError):
        lines = [error.lineno]
    return f"line {lines[-1]}: " if lines and lines[-1] else ""
