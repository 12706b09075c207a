"""A loss, a metric and a callback of your own, in one plugin.

    keras-seq train runs/tags --task tag --labeled train.tsv --import focal.py \
        --set training.loss=focal --set model.crf=false \
        --set training.monitor=whole-lines --set training.callbacks=rates
    keras-seq evaluate runs/tags --labeled test.tsv --import focal.py --metric whole-lines
"""

import keras
from keras import ops

import keras_seq


@keras_seq.register_loss("focal")
def focal_loss(ids, logits):
    """Cross-entropy times (1 - p)^2, so that easy targets count less (Lin et al., 2017)."""
    log_p = ops.take_along_axis(ops.log_softmax(logits), ids[:, None], axis=-1)[:, 0]
    return -log_p * (1 - ops.exp(log_p)) ** 2


@keras_seq.register_metric("whole-lines", label="lines without a mistake", digits=3)
def whole_lines(answers, references):
    """The share of lines that are right from the first word to the last."""
    return sum(map(str.__eq__, answers, references)) / len(references)


@keras_seq.register_callback("rates")
def rates(run):
    """After each epoch, appends the learning rate to `rates.txt` in the run's folder."""

    class Rates(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            rate = float(ops.convert_to_numpy(self.model.optimizer.learning_rate))
            with open(run.path / "rates.txt", "a") as file:
                file.write(f"{rate:.6f}\n")

    return Rates()
