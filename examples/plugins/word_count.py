"""A task of your own: the word count of a text, from a sum over its tokens.

keras-seq train runs/counts --task word-count --labeled counts.tsv --import word_count.py
keras-seq classify runs/counts --import word_count.py < input.txt
"""

from typing import Literal

import keras
from keras import ops

from keras_seq import register_family, register_task
from keras_seq.inference.classifier import Classifier
from keras_seq.serving.label_signatures import label_signatures
from keras_seq.serving.model_graphs import label_graph
from keras_seq.settings import ModelSection, a_family, a_number
from keras_seq.tasks.labels import LabelEvaluation, LabelExporter, LabelTask
from keras_seq.text import LABELED
from keras_seq.training.label_objectives import ClassificationObjective, make_label_loss


class Counter(keras.Model):
    """Adds the learned vectors of all tokens; each possible count is a class."""

    def __init__(self, vocabulary_size, num_labels, units, dtype=None):
        source = keras.Input((None,), dtype="int32", name="source")
        real = ops.cast(ops.not_equal(source, 0), "float32")[..., None]
        vectors = keras.layers.Embedding(vocabulary_size, units, name="vectors")(source)
        summed = ops.sum(vectors * real, axis=1)
        outputs = keras.layers.Dense(num_labels, name="scores")(summed)
        super().__init__(inputs={"source": source}, outputs=outputs, name="counter")


@register_family("word-count", training={"learning_rate": 0.1})
class CounterSettings(ModelSection):
    model_class = Counter
    family: Literal["counter"] = a_family("counter")
    units: int = a_number(8, 1, 1000, "Width of the vectors.")


def accuracy(references, answers):
    return {"accuracy": sum(map(str.__eq__, references, answers)) / len(references)}


class WordCount(LabelTask):
    name = "word-count"
    usage = "classify {} < input"
    roles = LABELED
    monitors = ("loss", "accuracy")

    def encoder(self, settings, source, target, read):
        from keras_seq.preparation.label_encoding import LabelEncoder

        return LabelEncoder(source, target, settings.data.max_source_length)

    def objective(self, settings):
        return ClassificationObjective(settings)

    def evaluation(self, run, model, train_model, resumed):
        def predict(texts, references):
            answers = Classifier.of_run(run, model)(texts)
            return answers, accuracy(references, answers)

        loss = make_label_loss(run.settings, model, train_model)
        return LabelEvaluation(run, loss, predict, "accuracy")

    def exporter(self, run, settings):
        return CountExporter(self, run, settings)


class CountExporter(LabelExporter):
    outputs = ("label", "probability", "truncated")
    verb = "counts"

    def module(self, model):
        return self._module(model, label_signatures)

    def graph(self, model):
        return label_graph(model, temperature=1.0)

    def describe(self):
        return "`text`: one string a row. For each row `label`, the number of its words."


register_task(WordCount())
