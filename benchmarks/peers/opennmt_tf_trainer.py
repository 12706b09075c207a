"""OpenNMT-tf's `Trainer` with its own data pipeline, run in its own environment.

A batch has 4,096 tokens and contains pairs of equal length. One batch per update, Adam.
"""

import argparse
import itertools
import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import opennmt
import tensorflow as tf
import tensorflow_addons as tfa
import worker

SHARING = opennmt.models.EmbeddingsSharingLevel


def transformer():
    """The shape of `transformer-small`."""
    return opennmt.models.Transformer(
        opennmt.inputters.WordEmbedder(embedding_size=256),
        opennmt.inputters.WordEmbedder(embedding_size=256),
        num_layers=3,
        num_units=256,
        num_heads=4,
        ffn_inner_dim=1024,
        dropout=0.1,
        attention_dropout=0.1,
        ffn_dropout=0.1,
        share_embeddings=SHARING.ALL,
    )


def rnn():
    """Bidirectional LSTM encoder; LSTM decoder with Bahdanau attention and input feeding."""
    return opennmt.models.SequenceToSequence(
        opennmt.inputters.WordEmbedder(embedding_size=256),
        opennmt.inputters.WordEmbedder(embedding_size=256),
        opennmt.encoders.LSTMEncoder(1, 256, bidirectional=True, dropout=0.2),
        opennmt.decoders.AttentionalRNNDecoder(
            1,
            512,
            bridge_class=opennmt.layers.DenseBridge,
            attention_mechanism_class=tfa.seq2seq.BahdanauAttention,
            dropout=0.2,
        ),
        share_embeddings=SHARING.SOURCE_TARGET_INPUT,
    )


SHAPES = {"transformer": transformer, "rnn": rnn}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", type=pathlib.Path)
    parser.add_argument("--shape", choices=SHAPES, required=True)
    arguments = parser.parse_args()
    tf.random.set_seed(1)
    corpus = arguments.corpus
    words = corpus / "opennmt-tf.words"
    # OpenNMT-tf adds one entry for unknown words.
    entries = ["<blank>", "<s>", "</s>", *(f"w{i}" for i in range(4, worker.VOCABULARY))]
    words.write_text("".join(f"{word}\n" for word in entries))
    model = SHAPES[arguments.shape]()
    model.initialize(
        {"source_vocabulary": str(words), "target_vocabulary": str(words)},
        params={"label_smoothing": 0.1, "average_loss_in_time": True},
    )
    dataset = model.examples_inputter.make_training_dataset(
        str(corpus / "source.txt"),
        str(corpus / "target.txt"),
        4096,
        batch_type="tokens",
        length_bucket_width=1,
        shuffle_buffer_size=-1,
        maximum_features_length=200,
        maximum_labels_length=200,
    )
    model.create_variables()
    optimizer = opennmt.optimizers.make_optimizer("Adam", 1e-4, beta_1=0.9, beta_2=0.98)
    trainer = opennmt.training.Trainer(model, optimizer)
    # `Trainer.__call__` sets these statistics before its loop over the steps.
    statistics = opennmt.training.TrainingStats(model, optimizer)
    trainer._training_stats = statistics
    steps = trainer._steps(dataset)

    def counted():
        """Number of target tokens so far, including end tokens."""
        counter = statistics._words_counters.get("target")
        return 0 if counter is None else int(counter.numpy())

    def train(count):
        before = counted()
        for _ in itertools.islice(steps, count):
            pass
        return counted() - before

    worker.serve_training(train, "OpenNMT-tf", "tensorflow")


if __name__ == "__main__":
    main()
