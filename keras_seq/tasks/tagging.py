"""The task `tag`: one tag for each word of a text."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from keras_seq.run import Run
from keras_seq.settings import SearchSettings, Settings
from keras_seq.tasks.labels import (
    CHARACTERS_MEANING,
    LabelEvaluation,
    LabelExporter,
    LabelTask,
    characters_of,
)
from keras_seq.tasks.task import Read
from keras_seq.text import TAGGED, InputError, Tokenizer, words_of

_MEANING = """\
`serving_default`, the signature used above: `text`, one string a row, whose words are separated by
white space. For each row:

* `tags`: a tag for each word, with a space between two.
* `truncated`: true if the text was longer than {limit} tokens; words after them have no tag.

`ids`, for clients that tokenize: `ids`, a row of token ids for each text, padded with 0 to equal
lengths, and `begins`, true where an id is the first of its word.{characters} For each row `tags`:
one for each id that begins a word, "" for the others. With batching all requests must have one
width: the server joins rows, but cannot pad them with 0."""


class Tagging(LabelTask):
    """Tags each word; trained with cross-entropy of each tag or, with a CRF, of tag sequences."""

    name = "tag"
    families = ("tagger-rnn", "tagger-transformer")
    usage = "tag {} < input > output"
    roles = TAGGED
    without = LabelTask.without | {"training.r_drop": "only texts have one label each"}
    metrics = ("entity_f1", "accuracy", "macro_f1")
    monitors = ("loss", "accuracy", "macro_f1", "entity_f1")

    def encoder(self, settings: Settings, source: Tokenizer, target: Any, read: Read) -> Any:
        from keras_seq.preparation.label_encoding import TagEncoder

        return TagEncoder(source, target, settings.model.reads_characters)

    def objective(self, settings: Settings) -> Any:
        from keras_seq.training.label_objectives import TaggingObjective

        return TaggingObjective(settings)

    def evaluation(self, run: Run, model: Any, train_model: Any, resumed: str | None) -> Any:
        from keras_seq.inference.outside_penalty import fit_outside_penalty
        from keras_seq.inference.tagger import Tagger
        from keras_seq.scoring import are_entity_tags
        from keras_seq.training.label_objectives import make_label_loss

        # Score entities only if the tags of both training and validation texts are entity tags.
        _, lines = run.valid_lines()
        known = run.labels.names, {tag for line in lines for tag in words_of(line)}
        monitor = "entity_f1" if all(map(are_entity_tags, known)) else "accuracy"
        if run.settings.training.monitor == "entity_f1" != monitor:
            raise InputError(
                "training.monitor: received 'entity_f1', but the tags are not those of "
                "entities such as B-PER: expected 'accuracy', 'macro_f1' or 'loss'"
            )
        loss = make_label_loss(run.settings, model, train_model)
        tagger = Tagger.of_run(run, model)

        def predict(
            texts: Sequence[str], references: Sequence[str]
        ) -> tuple[list[str], dict[str, float]]:
            if monitor != "entity_f1":
                answers = tagger(texts)
                return answers, _scores(references, answers)
            rows = [words_of(line) for line in references]
            penalty, tags = fit_outside_penalty(tagger, texts, rows)
            answers = [" ".join(row) for row in tags]
            return answers, _scores(references, answers) | {"outside_penalty": penalty}

        return LabelEvaluation(run, loss, predict, monitor)

    def refused_metrics(self, run: Run, references: Sequence[str]) -> dict[str, str]:
        from keras_seq.scoring import are_entity_tags

        tags = {tag for line in references for tag in words_of(line)}
        if are_entity_tags(tags | set(run.labels.names)):
            return {}
        reason = "the tags are not of entities: expected O, and B-, I-, E- or S- with a type"
        return {"entity_f1": reason}

    def predict(
        self, run: Run, model: Any, texts: Sequence[str], search: SearchSettings | None = None
    ) -> tuple[tuple[str, ...], int]:
        from keras_seq.inference.tagger import Tagger

        return tuple(Tagger.of_run(run, model, search)(texts)), 0

    def split(self, line: str) -> list[str]:
        return words_of(line)

    def baseline_labels(self, test: Any) -> tuple[str, list[list[str]]]:
        from keras_seq.evaluation.baselines import most_frequent_tags

        return "most frequent tag of each word", most_frequent_tags(test.run, test.sources)

    def exporter(self, run: Run, settings: Settings) -> Any:
        return TaggingExporter(self, run, settings)


def _scores(references: Sequence[str], answers: Sequence[str]) -> dict[str, float]:
    from keras_seq.scoring import tag_scores

    scores = tag_scores([*map(words_of, references)], [*map(words_of, answers)])
    values = {"accuracy": scores.words.accuracy, "macro_f1": scores.words.macro_f1}
    return values if scores.entities is None else values | {"entity_f1": scores.entities.f1}


class TaggingExporter(LabelExporter):
    """Exporter of a model that returns a tag for each word of a text; see `Exporter`."""

    outputs = ("tags", "truncated")
    verb = "tags"

    def inputs(self) -> list[str]:
        """Returns validation texts that a server does not truncate, so all words get tags."""
        texts = super().inputs()
        rows = self._words(texts)
        return [
            text
            for text, row in zip(texts, rows, strict=True)
            if len(row.ids) <= self.limit and len(text) <= self._characters
        ]

    def module(self, model: Any) -> Any:
        from keras_seq.inference.tagger import outside_penalty_of
        from keras_seq.serving.label_signatures import tag_signatures

        penalty = outside_penalty_of(self._run)
        return self._module(model, functools.partial(tag_signatures, outside_penalty=penalty))

    def graph(self, model: Any) -> Any:
        from keras_seq.inference.tagger import outside_penalty_of
        from keras_seq.serving.model_graphs import tag_graph

        return tag_graph(model, self._run.labels, outside_penalty_of(self._run))

    def encode(self, texts: Sequence[str]) -> dict[str, list[Any]]:
        rows = self._words(texts)
        begins = [[place in row.begins for place in range(len(row.ids))] for row in rows]
        arrays: dict[str, list[Any]] = {"ids": [row.ids for row in rows], "begins": begins}
        if self._reads_characters:
            arrays["characters"] = characters_of(rows)
        return arrays

    def decode(self, answers: list[Any]) -> list[str]:
        """Joins the tags of each row. Steps that do not begin a word have the tag ""."""
        return [" ".join(tag for tag in row if tag) for row in answers]

    def describe(self) -> str:
        characters = f" {CHARACTERS_MEANING}" if self._reads_characters else ""
        return _MEANING.format(limit=self.limit, characters=characters)


TASK = Tagging()
