"""Models with an encoder of KerasHub: properties that no other test covers."""

import numpy as np
import pytest

from keras_seq.models import BackboneSeq2Seq, BackboneTextEncoder, TextClassifier

SIZES = {"num_layers": 1, "units": 8, "feedforward_units": 16, "num_heads": 2, "positions": 8}


@pytest.mark.parametrize("backbone", ["bert", "distil_bert"])
def test_padding_may_exceed_the_positions_of_the_backbone(backbone):
    source = np.array([[5, 6, 7, 8, 9, 10, 3], [5, 6, 3, 0, 0, 0, 0]])
    wide = np.pad(source, [[0, 0], [0, 5]])
    encoder = BackboneTextEncoder(20, backbone, **SIZES)
    classifier = TextClassifier(encoder, 3, "first")
    np.testing.assert_allclose(
        classifier({"source": wide}), classifier({"source": source}), atol=1e-6
    )
    decoder = {"num_decoder_layers": 1, "units": 8, "feedforward_units": 8, "num_heads": 1}
    seq2seq = BackboneSeq2Seq(encoder, 20, **decoder)
    target = np.array([[2, 5], [2, 6]])
    np.testing.assert_allclose(
        seq2seq({"source": wide, "target": target}),
        seq2seq({"source": source, "target": target}),
        atol=1e-6,
    )


def test_text_beyond_the_positions_of_the_backbone_is_ignored():
    source = np.array([[5, 6, 7, 8, 9, 10, 11, 12, 13, 3]])
    for pooling in ("first", "mean", "max"):
        classifier = TextClassifier(BackboneTextEncoder(20, **SIZES), 3, pooling)
        np.testing.assert_allclose(
            classifier({"source": source}), classifier({"source": source[:, :7]}), atol=1e-6
        )


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"backbone": "gemma"}, "`backbone` must be one of 'bert', 'distil_bert'"),
        ({"num_heads": 3}, "`num_heads` must divide"),
        ({"positions": 1}, "`positions` must be above 1"),
        ({"dropout": 1.0}, "`dropout` in"),
        ({"num_layers": 0}, "`num_layers` must be a positive integer"),
    ],
)
def test_invalid_backbone_arguments_raise_value_error(wrong, words):
    with pytest.raises(ValueError, match=words):
        BackboneTextEncoder(20, **{**SIZES, **wrong})


def test_backbone_has_no_last_step():
    with pytest.raises(ValueError, match="`pooling` must be one of 'first', 'mean', 'max'"):
        TextClassifier(BackboneTextEncoder(20, **SIZES), 3, "last")
