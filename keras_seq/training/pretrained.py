"""Loads the weights of a pretrained encoder into a new model."""

from __future__ import annotations

import keras

from keras_seq import backend
from keras_seq.models.backbone_encoder import make_backbone
from keras_seq.run import Run
from keras_seq.run.models import named_weights
from keras_seq.settings import SettingsError, read_backbone
from keras_seq.text import InputError, WordPieceTokenizer

# A layer after the encoder, which a model may lack.
_POOLER = "pooled_dense/"
# The embedding, with one row per word piece.
_EMBEDDING = "token_embedding/embeddings"


def set_pretrained(run: Run, model: keras.Model) -> None:
    """Loads the pretrained weights of a run into the encoder of its model.

    The rows of the embedding are reordered to the run's vocabulary. If the model has a layer with
    the name of the pretrained pooler (BERT's layer over the first step), its weights are loaded as
    well.
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
            if name.startswith(_POOLER):
                continue
            raise InputError(f"{directory}: the model has no weight {name}")
        array = backend.to_numpy(weight)
        if name.endswith(_EMBEDDING):
            array = array[list(tokenizer.original_ids)]
        weights[name].assign(array)
