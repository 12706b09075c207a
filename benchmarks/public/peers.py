"""The peers: the script, the environment and the arguments of each."""

from __future__ import annotations

from typing import NamedTuple


class Peer(NamedTuple):
    """A script in this folder, and a name in `environments.REQUIREMENTS`.

    A timed peer gets the processor minutes of the training of keras-seq as its last argument, and
    trains no longer than that.
    """

    script: str
    environment: str
    arguments: tuple[str, ...] = ()
    timed: bool = False


PEERS = {
    "logistic regression": Peer("logistic_regression", "scikit-learn"),
    "fastText": Peer("fasttext_classifier", "fasttext"),
    "crfsuite": Peer("crfsuite_tagger", "sklearn-crfsuite"),
    "torch Transformer": Peer("torch_translator", "torch", timed=True),
    "OpenNMT-tf Transformer": Peer("opennmt_tf_translator", "opennmt-tf", timed=True),
    "torch GPT": Peer("torch_gpt", "torch", timed=True),
    "yoyodyne attentive LSTM": Peer(
        "yoyodyne_models", "yoyodyne", ("SoftAttentionLSTM",), timed=True
    ),
    "yoyodyne pointer-generator LSTM": Peer(
        "yoyodyne_models", "yoyodyne", ("PointerGeneratorLSTM",), timed=True
    ),
    "yoyodyne rotary Transformer": Peer(
        "yoyodyne_models", "yoyodyne", ("RotaryTransformer",), timed=True
    ),
    "yoyodyne rotary pointer-generator Transformer": Peer(
        "yoyodyne_models", "yoyodyne", ("PointerGeneratorRotaryTransformer",), timed=True
    ),
}
