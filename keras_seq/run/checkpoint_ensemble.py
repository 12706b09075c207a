"""Makes one model whose members are several checkpoints of a run."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from keras_seq.run import Run
from keras_seq.run.models import build_run_model, weight_shapes
from keras_seq.settings import Settings, SettingsError
from keras_seq.settings.combinations import REQUIRED_OF_MEMBERS
from keras_seq.text import InputError

# Names of the weights of an ensemble; see `keras_seq.models.members`.
_MEMBER = re.compile(r"member_(\d+)/(.*)")


def ensemble_settings(run: Run, count: int) -> Settings:
    """Returns the settings of a model whose members are `count` checkpoints of a run.

    If the checkpoints have several members, the ensemble has all of them.

    Raises InputError if the models of this family cannot have several members.
    """
    model, training = run.settings.model, run.settings.training
    if "members" not in type(model).model_fields:
        raise InputError(
            f"{run.path}: probabilities cannot be averaged, because model.family {model.family!r} "
            "has no model.members: average the weights"
        )
    # The new run does not train, so that most methods of its training do not matter. That of guided
    # attention also says which attention is shown.
    reset = {key: value for key, value in REQUIRED_OF_MEMBERS.items() if key != "guided_alignment"}
    members = count * _members(run.settings)
    settings = run.settings.model_copy(
        update={
            "model": model.model_copy(update={"members": members}),
            "training": training.model_copy(update=reset if members > 1 else {}),
        }
    )
    try:
        return Settings.from_dict(settings.to_dict(), where=f"{run.path}: ")
    except SettingsError as error:
        advice = "average the weights" + (", or fewer checkpoints" if members > 100 else "")
        raise InputError(f"{error}: {advice}") from None


def ensemble_weights(run: Run, steps: Sequence[int], settings: Settings) -> dict[str, np.ndarray]:
    """Returns the weights of an ensemble of checkpoints of a run, by name.

    Args:
        run: The run.
        steps: The steps of the checkpoints.
        settings: The result of `ensemble_settings`.
    """
    shapes = weight_shapes(build_run_model(Run(run.path, settings)))
    each = _members(run.settings)
    weights = {}
    for number, step in enumerate(steps):
        names = {
            stored: name
            for name in shapes
            if (stored := _name_in_checkpoint(name, number, each)) is not None
        }
        arrays = run.load_weights({stored: shapes[names[stored]] for stored in names}, step)
        weights.update({names[stored]: array for stored, array in arrays.items()})
    return weights


def _name_in_checkpoint(name: str, number: int, each: int) -> str | None:
    """Returns the name in checkpoint `number` of a weight of the ensemble; None if it has none.

    `each` is the number of members of a checkpoint.
    """
    match = _MEMBER.fullmatch(name)
    if match is None:
        # An ensemble of one checkpoint with one member is that model.
        return name
    member = int(match[1]) - number * each
    if not 0 <= member < each:
        return None
    return match[2] if each == 1 else f"member_{member}/{match[2]}"


def _members(settings: Settings) -> int:
    return int(getattr(settings.model, "members", 1))
