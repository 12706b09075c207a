"""A Transformer of OpenNMT-tf with its own data pipeline: KIND WORK SEED MINUTES.

The shape and the training are those of the preset `transformer-tiny`: 4 layers, width 128, 4 heads,
feed-forward 256, dropout 0.3, a target table shared with the output, label smoothing 0.1, Adam with
0.005 after 1,500 updates of warm-up and inverse square root decay, batches of 4,096 tokens. The
training ends after MINUTES of processor time. Beam search of 5 writes the tokens of dev.tsv and
test.tsv into predicted-dev.txt and predicted-test.txt.
"""

import os
import pathlib
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import opennmt
import peer_files
import tensorflow as tf
from opennmt.utils.checkpoint import Checkpoint

WIDTH, RATE, WARMUP, DROPOUT = 128, 0.005, 1500, 0.3


def transformer():
    return opennmt.models.Transformer(
        opennmt.inputters.WordEmbedder(embedding_size=WIDTH),
        opennmt.inputters.WordEmbedder(embedding_size=WIDTH),
        num_layers=4,
        num_units=WIDTH,
        num_heads=4,
        ffn_inner_dim=256,
        dropout=DROPOUT,
        attention_dropout=0.0,
        ffn_dropout=0.0,
        share_embeddings=opennmt.models.EmbeddingsSharingLevel.TARGET,
    )


@tf.keras.utils.register_keras_serializable()
class InverseSquareRoot(tf.keras.optimizers.schedules.LearningRateSchedule):
    def __call__(self, step):
        step = tf.cast(step, tf.float32) + 1
        return RATE * tf.minimum(step / WARMUP, tf.math.rsqrt(step / WARMUP))

    def get_config(self):
        return {}


def main() -> None:
    work, seed, minutes = pathlib.Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    tf.random.set_seed(seed)
    data = {}
    for column, name in enumerate(("source", "target")):
        for part in ("train", *peer_files.PREDICTED):
            lines = [row[column] for row in peer_files.read(work, part)]
            (work / f"{part}.{name}").write_text("".join(f"{line}\n" for line in lines))
        # OpenNMT-tf adds one entry for unknown words. The first four ids are special.
        words = (work / f"{name}.words").read_text().split()[4:]
        vocabulary = work / f"{name}.vocabulary"
        entries = ["<blank>", "<s>", "</s>", *words]
        vocabulary.write_text("".join(f"{word}\n" for word in entries))
        data[f"{name}_vocabulary"] = str(vocabulary)
    model = transformer()
    parameters = {
        "label_smoothing": 0.1,
        "average_loss_in_time": True,
        "beam_width": 5,
        "length_penalty": 1.0,
        "maximum_decoding_length": 200,
    }
    model.initialize(data, params=parameters)
    dataset = model.examples_inputter.make_training_dataset(
        str(work / "train.source"),
        str(work / "train.target"),
        4096,
        batch_type="tokens",
        length_bucket_width=1,
        shuffle_buffer_size=-1,
        maximum_features_length=200,
        maximum_labels_length=200,
    )
    model.create_variables()
    schedule = InverseSquareRoot()
    optimizer = opennmt.optimizers.make_optimizer(
        "Adam", schedule, beta_1=0.9, beta_2=0.98, clipnorm=1.0
    )
    trainer = opennmt.training.Trainer(model, optimizer)
    # `Trainer.__call__` sets these statistics before its loop over the steps.
    trainer._training_stats = opennmt.training.TrainingStats(model, optimizer)
    begin = time.process_time()
    for number, loss in enumerate(trainer._steps(dataset)):
        if number % 200 == 0:
            print(f"{number} updates, loss {float(loss):.3f}", file=sys.stderr, flush=True)
        if time.process_time() - begin > 60 * minutes:
            break
    checkpoint = Checkpoint(model, optimizer, model_dir=str(work / "model"))
    path = checkpoint.save(0)
    peer_files.write_seconds(work)
    config = {
        "model_dir": str(work / "model"),
        "data": data,
        "params": parameters,
        "infer": {"batch_size": 32, "length_bucket_width": 5},
    }
    runner = opennmt.Runner(transformer(), config)
    for part in peer_files.PREDICTED:
        runner.infer(
            str(work / f"{part}.source"),
            predictions_file=str(work / f"predicted-{part}.txt"),
            checkpoint_path=path,
        )


main()
