"""Models with an encoder of KerasHub: properties that no other test covers."""

import numpy as np
import pytest

from keras_seq.models import BackboneClassifier, BackboneSeq2Seq

pytestmark = pytest.mark.jax

SIZES = {
    "backbone_layers": 1,
    "backbone_units": 8,
    "backbone_feedforward_units": 16,
    "backbone_heads": 2,
    "backbone_positions": 8,
}


@pytest.mark.parametrize("backbone", ["bert", "distil_bert"])
def test_padding_may_exceed_the_positions_of_the_backbone(backbone):
    source = np.array([[5, 6, 7, 8, 9, 10, 3], [5, 6, 3, 0, 0, 0, 0]])
    wide = np.pad(source, [[0, 0], [0, 5]])
    classifier = BackboneClassifier(20, 3, backbone=backbone, **SIZES)
    np.testing.assert_allclose(
        classifier({"source": wide}), classifier({"source": source}), atol=1e-6
    )
    decoder = {"num_decoder_layers": 1, "units": 8, "feedforward_units": 8, "num_heads": 1}
    seq2seq = BackboneSeq2Seq(20, 20, backbone=backbone, **SIZES, **decoder)
    target = np.array([[2, 5], [2, 6]])
    np.testing.assert_allclose(
        seq2seq({"source": wide, "target": target}),
        seq2seq({"source": source, "target": target}),
        atol=1e-6,
    )


def test_text_beyond_the_positions_of_the_backbone_is_ignored():
    source = np.array([[5, 6, 7, 8, 9, 10, 11, 12, 13, 3]])
    for pooling in ("first", "mean", "max"):
        classifier = BackboneClassifier(20, 3, pooling=pooling, **SIZES)
        np.testing.assert_allclose(
            classifier({"source": source}), classifier({"source": source[:, :7]}), atol=1e-6
        )


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"backbone": "gemma"}, "`backbone` must be one of 'bert', 'distil_bert'"),
        ({"backbone_heads": 3}, "`backbone_heads` must divide"),
        ({"backbone_positions": 1}, "`backbone_positions` must be above 1"),
        ({"backbone_dropout": 1.0}, "`backbone_dropout` in"),
        ({"backbone_layers": 0}, "`backbone_layers` must be a positive integer"),
        ({"pooling": "last"}, "`pooling` must be one of"),
    ],
)
def test_invalid_backbone_arguments_raise_value_error(wrong, words):
    with pytest.raises(ValueError, match=words):
        BackboneClassifier(20, 3, **{**SIZES, **wrong})
