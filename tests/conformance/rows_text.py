"""Rows of the contract for classifiers and taggers; see `conformance.table`."""

from functools import partial

from conformance.harness import Row
from keras import ops

from keras_seq import layers, models
from keras_seq.models.call_method import CallMethod

RECURRENT = {"embedding_units": 8, "units": 4}
TRANSFORMER = {"units": 8, "feedforward_units": 16, "num_heads": 2}


def tag(model, arrays):
    """Every third word is of two tokens and more; with a field also how likely some tags are."""
    source = arrays["source"]
    begins = ops.logical_and(ops.not_equal(source, 0), ops.not_equal(source % 3, 0))
    outputs = model({"source": source, "begins": begins})
    if model.field is None:
        return outputs
    given = {"inputs": outputs["logits"], "tags": source % 2, "mask": begins}
    return outputs, CallMethod(model.field, "log_likelihood")(given)


CLASSIFIERS = {
    "BagClassifier-hidden": partial(
        models.BagClassifier, 20, 8, embedding_units=6, hidden_units=16
    ),
    "BagClassifier-linear": partial(models.BagClassifier, 20, 8, embedding_units=6, hidden_units=0),
    "RecurrentClassifier-last": partial(models.RecurrentClassifier, 20, 8, **RECURRENT),
    "RecurrentClassifier-mean": partial(
        models.RecurrentClassifier, 20, 8, **RECURRENT, cell="lstm", num_layers=2, pooling="mean"
    ),
    "TransformerClassifier-mean": partial(models.TransformerClassifier, 20, 8, **TRANSFORMER),
    "TransformerClassifier-max": partial(
        models.TransformerClassifier, 20, 8, **TRANSFORMER, norm="post", pooling="max"
    ),
}
TAGGERS = {
    "RecurrentTagger-field": partial(models.RecurrentTagger, 20, 2, crf=True, **RECURRENT),
    "RecurrentTagger-plain": partial(
        models.RecurrentTagger, 20, 2, **RECURRENT, cell="lstm", num_layers=2
    ),
    "TransformerTagger-field": partial(models.TransformerTagger, 20, 2, crf=True, **TRANSFORMER),
    "TransformerTagger-plain": partial(models.TransformerTagger, 20, 2, **TRANSFORMER),
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
            outputs=["BU"],
            call=lambda model, arrays: model(arrays),
            float32_outputs=[0],
        )
        for name, make in CLASSIFIERS.items()
    ),
    *(
        Row(
            name,
            make=make,
            inputs={"source": "BS ids"},
            outputs=["BSH", "BS", "B"] if "field" in name else ["BSH", "BS"],
            call=tag,
            float32_outputs=[0, 2],
        )
        for name, make in TAGGERS.items()
    ),
]
