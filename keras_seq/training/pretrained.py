"""The weights of a pretrained encoder, put into a model that is new."""

from __future__ import annotations

import keras

from keras_seq import backend
from keras_seq.models.backbone_encoder import make_backbone
from keras_seq.run import Run
from keras_seq.run.models import named_weights
from keras_seq.settings import SettingsError, read_backbone
from keras_seq.text import InputError, WordPieceTokenizer

# What a model may do without.
_BEHIND = "pooled_dense/"
# What has a row for each word piece.
_TABLE = "token_embedding/embeddings"


def set_pretrained(run: Run, model: keras.Model) -> None:
    """Gives the encoder of a model the weights that its run was prepared with.

    Rows of its table are brought into the order of the run's vocabulary. What the
    pretrained encoder has behind its steps, as BERT's layer over the first, begins
    the model's own layer of that name, if it has one.

    Args:
        run: Prepared with `training.from_hub`.
        model: Its model.

    Raises:
        InputError: The run is not as it was prepared.
    """
    directory = run.pretrained_directory
    tokenizer = run.source_tokenizer
    if not isinstance(tokenizer, WordPieceTokenizer):
        raise InputError(f"{run.path}: its vocabulary is not that of a pretrained encoder")
    try:
        _, rows = read_backbone(directory)
        encoder = make_backbone(rows, run.settings.model.model_dump())
        encoder.load_weights(directory / "model.weights.h5")
    except SettingsError as error:
        raise InputError(str(error)) from None
    except (OSError, ValueError, KeyError) as error:
        first = (str(error).strip() or repr(error)).splitlines()[0]
        raise InputError(
            f"{directory}: not the weights of the encoder that settings.toml describes: {first}"
        ) from None
    weights = named_weights(model)
    for name, weight in named_weights(encoder).items():
        if name not in weights:
            if name.startswith(_BEHIND):
                continue
            raise InputError(f"{directory}: the model has no weight {name}")
        array = backend.to_numpy(weight)
        if name.endswith(_TABLE):
            array = array[list(tokenizer.original_ids)]
        weights[name].assign(array)
