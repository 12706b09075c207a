"""The names of the trained models, and their predictors."""

from __future__ import annotations

from typing import Any

from keras_seq.run import Run
from keras_seq.run.pretrained_models import PREFIX, pretrained_models


def names() -> dict[str, str]:
    """Returns the trained models by name, each with a line about it.

    The line has the task, the data with its license and citation, the score and the size. The
    models are in the folder that the variable KERAS_SEQ_PRETRAINED names, or on the Hugging Face
    Hub if the variable is not set. `tools/make_pretrained.py` in the sources builds a folder.

    Raises:
        InputError: If the folder has no valid index.

    Example:

    >>> for name, line in keras_seq.pretrained.names().items():
    ...     print(f"{name}: {line}")  # doctest: +SKIP
    """
    return {name: str(model) for name, model in pretrained_models().items()}


def load(name: str, **options: Any) -> Any:
    """Loads a trained model.

    Args:
        name: A name of `names()`. Commands, `Translator.load` and the other predictors take it as
            `pretrained:NAME`.
        **options: Options of `Translator.load` or of the other predictor, such as `beam_size=1`.

    Returns:
        The predictor for the task of the model, such as a `Translator` or a `Classifier`.

    Raises:
        InputError: If there is no such model, or its files differ from those that were built.

    Example:

    >>> translator = keras_seq.pretrained.load("dates")  # doctest: +SKIP
    >>> translator(["19 July 2033"])  # doctest: +SKIP
    ['2033-07-19']
    """
    # `names` does not need Keras.
    from keras_seq.estimators.classes import BY_TASK

    run = Run.open(PREFIX + name.removeprefix(PREFIX))
    return BY_TASK[run.settings.task].load(run.path, **options)
