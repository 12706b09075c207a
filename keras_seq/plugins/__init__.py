"""Adds model families, tasks, losses, metrics, vocabularies and callbacks of your own."""

from .loading import import_plugin, import_plugins_of_environment
from .registering import (
    register_callback,
    register_family,
    register_loss,
    register_metric,
    register_task,
    register_vocabulary,
)
from .registry import Kind, PluginError, added, plugin_of

__all__ = [
    "Kind",
    "PluginError",
    "added",
    "import_plugin",
    "import_plugins_of_environment",
    "plugin_of",
    "register_callback",
    "register_family",
    "register_loss",
    "register_metric",
    "register_task",
    "register_vocabulary",
]
