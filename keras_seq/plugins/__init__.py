"""Adds model families, tasks, losses, metrics, vocabularies and callbacks of your own."""

from .loading import VARIABLE, import_plugin, import_plugins_of_environment, set_import_context
from .registering import (
    register_callback,
    register_family,
    register_loss,
    register_metric,
    register_task,
    register_vocabulary,
)
from .registry import Kind, Metric, PluginError, added, plugin_of, plugins, remove, reserve

__all__ = [
    "VARIABLE",
    "Kind",
    "Metric",
    "PluginError",
    "added",
    "import_plugin",
    "import_plugins_of_environment",
    "plugin_of",
    "plugins",
    "register_callback",
    "register_family",
    "register_loss",
    "register_metric",
    "register_task",
    "register_vocabulary",
    "remove",
    "reserve",
    "set_import_context",
]
