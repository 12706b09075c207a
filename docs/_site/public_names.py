"""The public names of keras-seq: what the packages list in `__all__`."""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import NamedTuple

# In the order of the pages. Other packages have no names for users.
PACKAGES = {
    "": "Training, inference and evaluation",
    "estimators": "Models with training",
    "pretrained": "Trained models",
    "layers": "Layers",
    "models": "Models",
    "losses": "Losses",
    "metrics": "Metrics",
    "callbacks": "Callbacks",
    "schedules": "Learning rate schedules",
    "search": "Search",
    "training": "Training",
    "evaluation": "Evaluation",
    "scoring": "Scores",
    "text": "Text",
    "cleaning": "Cleaning of corpora",
    "augmentation": "More training pairs",
    "tuning": "Search of settings",
    "vectors": "Word vectors",
    "run": "Runs",
    "settings": "Settings",
    "plugins": "Plugins",
    "tasks": "Tasks",
    "serving": "Serving",
    "runtime": "Exported models without Keras",
    "litert": "Exported models on phones",
}


class PublicName(NamedTuple):
    """A public name, the package that lists it, and the object."""

    name: str
    package: str
    object: object

    @property
    def path(self) -> str:
        return ".".join(filter(None, ("keras_seq", self.package, self.name)))


@functools.cache
def public_names() -> dict[str, list[PublicName]]:
    """Returns the public names of each package."""
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(".".join(filter(None, ("keras_seq", package))))
        listed = getattr(module, "__all__", [])
        names = [PublicName(name, package, getattr(module, name)) for name in listed]
        found[package] = [name for name in names if _is_documented(name.object)]
    return found


def _is_documented(public: object) -> bool:
    """Tests if an object is a class or a function; constants and packages have no page."""
    return inspect.isclass(public) or inspect.isroutine(public)


@functools.cache
def paths() -> dict[str, str]:
    """Returns the path of each public name; of two packages, the first."""
    found: dict[str, str] = {}
    for names in public_names().values():
        for name in names:
            # A name of the package itself is the shorter one.
            found.setdefault(name.name, name.path)
    return found
