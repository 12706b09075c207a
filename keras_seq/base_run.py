"""The run whose weights another training starts from."""

from __future__ import annotations

from collections.abc import Callable

from keras_seq.run import Run
from keras_seq.settings import Settings
from keras_seq.text import InputError


def open_base_run(settings: Settings, notice: Callable[[str], None] | None = None) -> Run | None:
    """Opens the run that `training.from_run` names, and checks that its weights will fit.

    Args:
        settings: Of the training that starts from it.
        notice: Called with a line for each damaged checkpoint passed over.

    Returns:
        The run, or None if none is named.

    Raises:
        InputError: No run with weights, or one with another model; the message has each
            difference.
    """
    path = settings.training.from_run
    if path is None:
        return None
    base = Run.open(path, notice=notice)
    base.require_weights()
    was, now = base.settings.model.model_dump(), settings.model.model_dump()
    differences = [
        f"model.{key} {was.get(key)} -> {now.get(key)}"
        for key in {**was, **now}
        # Rates of dropout decide how a model is trained, not what it is.
        if was.get(key) != now.get(key) and not key.endswith("dropout")
    ]
    if settings.training.from_run_vocabulary == "new":
        joint = base.settings.tokenizer.joint
        if joint != settings.tokenizer.joint:
            differences.append(f"tokenizer.joint {joint} -> {settings.tokenizer.joint}")
    if differences:
        raise InputError(
            f"{path}: its weights are of another model than is to be trained: "
            f"{'; '.join(differences)}: give the preset and the settings that it was trained with"
        )
    return base
