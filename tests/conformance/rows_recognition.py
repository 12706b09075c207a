"""Rows of CTC recognizers; see `conformance.table`.

Strides leave fewer frames than the harness knows of: here each stands as often as it is wide.
"""

from functools import partial

from conformance.harness import Row
from conformance.rows_speech import FRONT, source_of
from keras import ops

from keras_seq import layers, models

RECOGNIZER = {"vocabulary_size": 20, "convolution_units": 6, "units": 4}


def repeated(outputs, steps, stride):
    """`(B, F, U)` -> `(B, S, U)`, S that of `steps` `(S,)`."""
    places = ops.cumsum(ops.ones_like(steps, dtype="int32")) - 1
    return ops.take(outputs, places // stride, axis=1)


def convolve(layer, arrays):
    return repeated(layer(**arrays), arrays["inputs"][0, :, 0], layer.stride)


def recognize(model, arrays, stride):
    return repeated(model(source_of(arrays)), arrays["mask"][0], stride)


ROWS: list[Row] = [
    Row(
        "CTCLogits",
        make=partial(layers.CTCLogits, vocabulary_size=20),
        inputs={"inputs": "BTD"},
        masks={"mask": "T"},
        outputs=["BTV"],
        float32_outputs=[0],
    ),
    Row(
        "CTCRecognizer-features",
        make=partial(models.CTCRecognizer, features=8, strides=(2, 2), **RECOGNIZER),
        inputs={"features": "BSD"},
        masks={"mask": "S"},
        outputs=["BSV"],
        call=partial(recognize, stride=4),
        float32_outputs=[0],
        masked_by_lengths=True,
    ),
    Row(
        "CTCRecognizer-samples",
        make=lambda: models.CTCRecognizer(
            features=layers.LogMelSpectrogram(**FRONT), cell="lstm", num_layers=1, **RECOGNIZER
        ),
        inputs={"samples": "BS"},
        masks={"mask": "S"},
        outputs=["BSV"],
        call=partial(recognize, stride=2),
        float32_outputs=[0],
        masked_by_lengths=True,
    ),
    Row(
        "StridedConvolution",
        make=partial(layers.StridedConvolution, units=8, stride=2, kernel_size=4),
        inputs={"inputs": "BTD"},
        masks={"mask": "T"},
        outputs=["BTU"],
        call=convolve,
    ),
]
