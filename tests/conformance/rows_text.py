"""Rows of the contract for classifiers and taggers; see `conformance.table`."""

from functools import partial

from conformance.harness import Row
from keras import ops

from keras_seq import layers, models
from keras_seq.models.call_method import CallMethod

RECURRENT = {"embedding_units": 8, "units": 4}
TRANSFORMER = {"units": 8, "feedforward_units": 16, "num_heads": 2}


def tag(model, arrays):
    """Tags words of one or more tokens. A CRF also returns the log-likelihood of some tags."""
    source = arrays["source"]
    begins = ops.logical_and(ops.not_equal(source, 0), ops.not_equal(source % 3, 0))
    outputs = model({"source": source, "begins": begins})
    if model.field is None:
        return outputs
    given = {"inputs": outputs["logits"], "tags": source % 2, "mask": begins}
    return outputs, CallMethod(model.field, "log_likelihood")(given)


def vectors(encoder, arrays):
    """The outputs of a text encoder without its mask."""
    return {name: x for name, x in encoder(arrays).items() if name != "mask"}


bag = partial(models.BagTextEncoder, 20, embedding_units=6)
recurrent = partial(models.RecurrentTextEncoder, 20, **RECURRENT)
stacked = partial(recurrent, cell="lstm", num_layers=2)
convolutional = partial(
    models.ConvolutionalTextEncoder, 20, embedding_units=6, widths=(2, 3), filters=4
)
characters = partial(recurrent, character_filters=2, form_units=1)
transformer = partial(models.TransformerTextEncoder, 20, **TRANSFORMER)

CLASSIFIERS = {
    "recurrent-last": lambda: models.TextClassifier(recurrent(), 8, "last"),
    "recurrent-mean": lambda: models.TextClassifier(stacked(), 8, "mean"),
    "bag-hidden": lambda: models.TextClassifier(bag(), 8, hidden_units=16),
    "bag-linear": lambda: models.TextClassifier(bag(), 8),
    "convolutional": lambda: models.TextClassifier(convolutional(), 8, "max"),
    "transformer-mean": lambda: models.TextClassifier(transformer(), 8),
    "transformer-max": lambda: models.TextClassifier(transformer(norm="post"), 8, "max"),
}
TAGGERS = {
    "recurrent-field": lambda: models.TextTagger(recurrent(), 2, crf=True),
    "recurrent-plain": lambda: models.TextTagger(stacked(), 2),
    "transformer-field": lambda: models.TextTagger(transformer(), 2, crf=True),
    "transformer-plain": lambda: models.TextTagger(transformer(), 2),
}

ROWS: list[Row] = [
    *(
        Row(
            f"MaskedPooling-{kind}",
            make=partial(layers.MaskedPooling, kind),
            inputs={"inputs": "BSD"},
            masks={"mask": "S"},
            outputs=["BD"],
        )
        for kind in ("mean", "max", "last")
    ),
    *(
        Row(
            name,
            make=make,
            inputs={"source": "BS ids"},
            outputs=outputs,
            call=vectors,
        )
        for name, make, outputs in (
            ("BagTextEncoder", partial(bag, embedding_units=8, ngrams=3), ["BSU"]),
            ("ConvolutionalTextEncoder", convolutional, ["BSU"]),
            ("RecurrentTextEncoder-gru", recurrent, ["BU", "BSU"]),
            ("RecurrentTextEncoder-lstm", stacked, ["BU", "BSU"]),
            ("TransformerTextEncoder-pre", transformer, ["BSU"]),
            ("TransformerTextEncoder-post", partial(transformer, norm="post"), ["BSU"]),
        )
    ),
    Row(
        "RecurrentTextEncoder-characters",
        make=characters,
        inputs={"source": "BS ids", "characters": "BSF ids"},
        outputs=["BU", "BSU"],
        call=vectors,
    ),
    *(
        Row(
            f"TextClassifier-{name}",
            make=make,
            inputs={"source": "BS ids"},
            outputs=["BU"],
            call=lambda model, arrays: model(arrays),
            float32_outputs=[0],
        )
        for name, make in CLASSIFIERS.items()
    ),
    Row(
        "EnsembleClassifier",
        make=lambda: models.EnsembleClassifier.of(
            lambda name: models.TextClassifier(bag(), 8, name=name), 2
        ),
        inputs={"source": "BS ids"},
        outputs=["BU"],
        call=lambda model, arrays: model(arrays),
        float32_outputs=[0],
    ),
    *(
        Row(
            f"TextTagger-{name}",
            make=make,
            inputs={"source": "BS ids"},
            outputs=["BSH", "BS", "B"] if "field" in name else ["BSH", "BS"],
            call=tag,
            float32_outputs=[0, 2],
        )
        for name, make in TAGGERS.items()
    ),
]
