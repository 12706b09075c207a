"""TensorFlow's graphs, let go of when nothing uses them any more."""

from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Callable
from typing import Any

_CUSTOM = "CustomGradient-"


def release_graphs() -> None:
    """Makes graphs garbage that only the list of all custom gradients holds.

    TensorFlow keeps the gradient of each `tf.custom_gradient` in a graph as long as the process
    lives, and with it the graph, its tensors and what they stand for: some 30 MB for each training.
    Here the graph gets to hold its gradients, and the list only knows of them. Nothing happens
    without TensorFlow, or with one that keeps such a list elsewhere.
    """
    ops = sys.modules.get("tensorflow.python.framework.ops")
    gradients = getattr(getattr(ops, "gradient_registry", None), "_registry", {})
    for name, entry in list(gradients.items()):
        if not name.startswith(_CUSTOM):
            continue
        gradient = entry["type"]
        if isinstance(gradient, _HeldByItsGraph):
            if gradient.is_gone():
                del gradients[name]
        elif (graph := _graph_of(gradient)) is not None:
            entry["type"] = _HeldByItsGraph(gradient, graph)


class _HeldByItsGraph:
    """A custom gradient that lives as long as its graph.

    Args:
        gradient: Function of an operation and of the gradients of its outputs.
        graph: The graph of that operation.
    """

    def __init__(self, gradient: Callable[..., Any], graph: Any) -> None:
        # Tensors give a proxy of their graph, which passes attributes on and is no more than that.
        if not hasattr(graph, "_custom_gradients"):
            graph._custom_gradients = []
        graph._custom_gradients.append(gradient)
        self._gradient = weakref.ref(gradient)

    def is_gone(self) -> bool:
        """Whether there is no such graph any more."""
        return self._gradient() is None

    def __call__(self, operation: Any, *gradients: Any) -> Any:
        gradient = self._gradient()
        if gradient is None:
            raise LookupError("The graph of this custom gradient is gone.")
        return gradient(operation, *gradients)


def _graph_of(gradient: Callable[..., Any]) -> Any:
    """The graph whose tensors a registered gradient uses; None where that is not to be seen."""
    import tensorflow as tf

    for inner in inspect.getclosurevars(gradient).nonlocals.values():
        if inspect.isfunction(inner):
            result = inspect.getclosurevars(inner).nonlocals.get("result")
            for tensor in tf.nest.flatten(result):
                if tf.is_symbolic_tensor(tensor):
                    return tensor.graph
    return None
