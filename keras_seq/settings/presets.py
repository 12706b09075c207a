"""Presets: named settings, tuned together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keras_seq.plugins.registry import WithPlugins, reserve


def model_values(family: str, **values: Any) -> dict[str, Any]:
    """The section `model` for a family of models."""
    return {"family": family, **values}


def _transformer(
    layers: int, units: int, feedforward_units: int, heads: int, dropout: float, inner: float
) -> dict[str, Any]:
    """The section `model`; `inner` is the dropout rate of attention and activations."""
    depth = dict.fromkeys(("num_encoder_layers", "num_decoder_layers"), layers)
    sizes = {"units": units, "feedforward_units": feedforward_units, "num_heads": heads}
    rates = {"dropout": dropout, "attention_dropout": inner, "activation_dropout": inner}
    return model_values("transformer", **depth, **sizes, **rates, activation="relu", norm="pre")


def _recurrent(
    cell: str, embedding: int, encoder: int, decoder: int, dropout: float, **attention: Any
) -> dict[str, Any]:
    sizes = {"embedding_units": embedding, "encoder_units": encoder, "decoder_units": decoder}
    return model_values("rnn", cell=cell, **sizes, **attention, dropout=dropout)


def training_values(
    learning_rate: float,
    warmup_steps: int,
    batch_tokens: int = 4096,
    *,
    ema: float | None = None,
    every: int | None = None,
    **others: Any,
) -> dict[str, Any]:
    """Returns the section `training`. `every` is the interval of validation and checkpoints."""
    optional = {"ema": ema, "validate_every": every, "checkpoint_every": every}
    return {
        "schedule": "inverse_sqrt",
        "learning_rate": learning_rate,
        "warmup_steps": warmup_steps,
        "batch_tokens": batch_tokens,
        **{key: value for key, value in optional.items() if value is not None},
        **others,
    }


def _language_model(
    learning_rate: float, warmup_steps: int, family: str, **model: Any
) -> dict[str, Any]:
    # Label smoothing lowers the likelihood of text.
    training = training_values(
        learning_rate, warmup_steps, label_smoothing=0.0, ema=0.998, every=500
    )
    # Without a source, length limits cannot be relative to the source length.
    limits = {"max_length": 100, "max_length_ratio": 0.0, "max_length_extra": 100}
    return {
        "task": "language-model",
        "model": model_values(family, **model),
        "training": training,
        "search": {"method": "sampling", "top_p": 0.9, "length_normalization": "none", **limits},
    }


def _classifier(
    learning_rate: float, warmup_steps: int, family: str, **model: Any
) -> dict[str, Any]:
    return {
        "task": "classify",
        # Longer texts are truncated, and the removed part may matter most.
        "data": {"max_source_length": 400},
        "model": model_values(family, **model),
        "training": training_values(learning_rate, warmup_steps, ema=0.99, every=200),
    }


def _tagger(learning_rate: float, warmup_steps: int, family: str, **model: Any) -> dict[str, Any]:
    tagger = _classifier(learning_rate, warmup_steps, family, **model)
    tagger["training"]["label_smoothing"] = 0.0
    return {"task": "tag", "model": tagger["model"], "training": tagger["training"]}


def _of_words(preset: dict[str, Any], size: int, word_dropout: float, count: int) -> dict[str, Any]:
    """Adds a vocabulary of words of at least `count` occurrences, and dropout of words.

    Of a word that is unknown or dropped, the model reads the characters.
    """
    tokenizer = {"kind": "word", "size": size, "lowercase": True, "min_count": count}
    training = preset["training"] | {"source_word_dropout": word_dropout}
    return preset | {"tokenizer": tokenizer, "training": training}


def _of_characters(preset: dict[str, Any]) -> dict[str, Any]:
    """Makes a language model one of characters, and the lines of its text one text."""
    search = preset["search"] | {"max_length": 500, "max_length_extra": 500}
    training = preset["training"] | {"batch_tokens": 2048}
    data = {"packed": True, "max_target_length": 128}
    return preset | {
        "tokenizer": {"kind": "char"},
        "data": data,
        "training": training,
        "search": search,
    }


_SMALL = {"num_layers": 2, "units": 128, "feedforward_units": 512, "num_heads": 4, "dropout": 0.2}

_PRESETS: dict[str, Mapping[str, Any]] = {
    "transformer-tiny": {
        "model": _transformer(4, 128, 256, 4, 0.3, 0.0),
        # Averages about 500 updates; a longer average lags behind in short trainings.
        "training": training_values(0.005, 1500, ema=0.998, every=500),
    },
    # For small corpora whose symbols correspond in order, such as words and pronunciations.
    "transformer-symbols": {
        "model": _transformer(4, 64, 256, 4, 0.2, 0.0)
        | {"position": "rotary", "cross_position": "rotary"},
        "training": training_values(0.005, 100, 1024, ema=0.995, every=200),
    },
    "transformer-small": {
        "model": _transformer(3, 256, 1024, 4, 0.2, 0.1),
        "training": training_values(0.002, 2000),
    },
    "transformer-base": {
        "model": _transformer(6, 512, 2048, 8, 0.1, 0.1),
        "tokenizer": {"size": 32000},
        "training": training_values(0.0007, 4000, 25_000),
    },
    "transformer-big": {
        "model": _transformer(6, 1024, 4096, 16, 0.3, 0.1),
        "tokenizer": {"size": 32000},
        "training": training_values(0.0005, 4000, 25_000),
    },
    "rnn-small": {
        "model": _recurrent("gru", 256, 128, 256, 0.4, attention_units=256),
        "training": training_values(0.003, 500, ema=0.998, every=500),
    },
    # For small corpora of short symbol sequences, such as words and pronunciations.
    "rnn-symbols": {
        "model": _recurrent("lstm", 128, 128, 256, 0.6, attention="luong"),
        "training": training_values(0.003, 100, 1024, ema=0.995, every=200),
    },
    "rnn-base": {
        "model": _recurrent(
            "lstm",
            256,
            256,
            512,
            0.2,
            attention="bahdanau",
            attention_units=256,
            input_feeding=True,
        ),
        "training": training_values(0.001, 500),
    },
    "lm-transformer": _language_model(
        0.002,
        1000,
        "lm-transformer",
        **{"num_layers": 4, "units": 256, "feedforward_units": 1024, "num_heads": 4},
        **{"dropout": 0.3, "attention_dropout": 0.1, "activation_dropout": 0.1},
    ),
    # For a text whose lines continue each other, such as a play or source code.
    "lm-characters": _of_characters(
        _language_model(
            0.003,
            200,
            "lm-transformer",
            **{"num_layers": 4, "units": 128, "feedforward_units": 512, "num_heads": 4},
            **{"dropout": 0.1, "attention_dropout": 0.0, "activation_dropout": 0.0},
            position="rotary",
        )
    ),
    "lm-lstm": _language_model(
        0.003, 500, "lm-rnn", cell="lstm", num_layers=2, embedding_units=256, units=512, dropout=0.4
    ),
    "lm-gru": _language_model(
        0.003, 500, "lm-rnn", cell="gru", num_layers=1, embedding_units=256, units=512, dropout=0.4
    ),
    "classify-bag": _classifier(
        0.003, 100, "classifier-bag", embedding_units=128, hidden_units=128
    ),
    "classify-birnn": _classifier(0.002, 200, "classifier-rnn", embedding_units=128, units=128),
    "classify-cnn": _of_words(
        _classifier(
            0.003,
            100,
            "classifier-cnn",
            embedding_units=128,
            filters=100,
            character_filters=50,
            members=4,
        ),
        30_000,
        0.1,
        1,
    ),
    "classify-transformer": _classifier(0.001, 400, "classifier-transformer", **_SMALL),
    "tag-birnn": _of_words(
        _tagger(
            0.003,
            100,
            "tagger-rnn",
            cell="lstm",
            embedding_units=64,
            units=128,
            form_units=16,
            dropout=0.5,
            crf=True,
        ),
        30_000,
        0.3,
        2,
    ),
    "tag-transformer": _tagger(0.001, 400, "tagger-transformer", **_SMALL),
    "vae": {
        "task": "vae",
        "model": model_values(
            "vae-rnn",
            latent_units=32,
            embedding_units=256,
            encoder_units=128,
            decoder_units=256,
            dropout=0.3,
        ),
        # Word dropout, annealing and free bits prevent posterior collapse.
        "training": training_values(
            0.003,
            300,
            2048,
            ema=0.995,
            every=250,
            label_smoothing=0.0,
            word_dropout=0.4,
            kl_annealing="cyclical",
            kl_annealing_steps=1000,
            free_bits=0.5,
        ),
        "search": {"max_length": 100},
    },
    "speech-ctc": {
        "task": "speech",
        "model": model_values("speech-ctc", speed_change=0.1),
        "training": training_values(0.002, 200, 200_000, ema=0.99, every=100, label_smoothing=0.0),
        "search": {"beam_size": 10},
    },
    "speech-attention": {
        "task": "speech",
        "model": model_values("speech-attention", speed_change=0.1),
        "training": training_values(0.002, 200, 200_000, ema=0.99, every=100, label_smoothing=0.0),
        "search": {"beam_size": 4, "max_length_ratio": 0.0},
    },
    "wake-word": {
        "task": "wake-word",
        "tokenizer": {"kind": "word"},
        "model": model_values("wake-word"),
        "training": training_values(0.003, 200, 200_000, ema=0.99, every=100, label_smoothing=0.0),
    },
    "demo": {
        "tokenizer": {"kind": "unigram", "size": 1000},
        "model": _transformer(2, 128, 256, 4, 0.1, 0.0),
        "training": training_values(0.005, 200, 3072, ema=0.99, every=600, max_steps=1200),
        "search": {"beam_size": 4},
    },
}


def _preset_of_family(name: str, family: Any) -> Mapping[str, Any]:
    values = {"model": {"family": name}, "training": dict(family.training)}
    return values | ({"task": family.tasks[0]} if len(family.tasks) == 1 else {})


# Nested settings by the name of the preset. Each family of a plugin has a preset of its name.
PRESETS = WithPlugins("family", _PRESETS, _preset_of_family)
reserve("family", _PRESETS)
