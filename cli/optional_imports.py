"""Hides TensorFlow from commands on other backends."""

from __future__ import annotations

import sys

from keras_seq.process.optional_packages import backend_name


def hide_tensorflow() -> None:
    """Hides TensorFlow in this process, unless it is the backend or a plugin may need it.

    `fit` of Keras imports TensorFlow on each backend, only to ask if the data are tensors of it.
    That takes four seconds of processor time.
    """
    from keras_seq.plugins.loading import has_plugins

    if backend_name() != "tensorflow" and not has_plugins():
        sys.modules.setdefault("tensorflow", None)  # type: ignore[arg-type]
