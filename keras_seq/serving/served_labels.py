"""What a server is told of runs that answer with labels: classifiers and taggers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras_seq.inference.classifier import Classifier
from keras_seq.inference.hypothesis import CHARACTERS_PER_TOKEN
from keras_seq.inference.tagger import Tagger
from keras_seq.run import Run
from keras_seq.serving.label_graph import LabelGraph
from keras_seq.serving.tag_graph import TagGraph
from keras_seq.settings import Settings
from keras_seq.text import word_tokens

_LABEL = """\
`serving_default`, the signature used above: `text`, one string a row. For each row:

* `label`: the likeliest label.
* `probability`: how likely the model holds it to be.
* `truncated`: true if the text was longer than {limit} tokens; the rest was not read.

`ranked`, with `"signature_name": "ranked"` beside `"instances"` in REST or
`request.model_spec.signature_name = "ranked"` in gRPC: `label` and `probability` of all {count}
labels, the likeliest first.

`ids`, for those who tokenize outside: `ids`, a row of token ids for each text, padded with 0 to
equal lengths. For each row `label` and `probability`. With batching all requests must be of one
width: the server joins rows, but cannot pad them with 0."""

_TAGS = """\
`serving_default`, the signature used above: `text`, one string a row, whose words are parted by
white space. For each row:

* `tags`: a tag for each word, with a space between two.
* `truncated`: true if the text was longer than {limit} tokens; words behind these have no tag.

`ids`, for those who tokenize outside: `ids`, a row of token ids for each text, padded with 0 to
equal lengths, and `begins`, true where an id is the first of its word. For each row `tags`: one
for each id that begins a word, "" for the others. With batching all requests must be of one
width: the server joins rows, but cannot pad them with 0."""


class ServedLabels:
    """Text in, its label out; see `Served`.

    Args:
        run: Opened, with weights.
        settings: Its own.
    """

    outputs: tuple[str, ...] = ("label", "probability", "truncated")
    verb = "labels"

    def __init__(self, run: Run, settings: Settings) -> None:
        self._run = run
        self.limit = settings.data.max_source_length

    def inputs(self) -> list[str]:
        """The texts that were validated on."""
        return self._run.valid_lines()[0]

    def answers(self, model: Any, texts: Sequence[str]) -> list[str]:
        """Their labels."""
        return Classifier.of_run(self._run, model)(texts)

    def graph(self, model: Any) -> Any:
        """A `LabelGraph`."""
        return LabelGraph(model, *self._parts())

    def feeds(self, texts: Sequence[str]) -> dict[str, list[Any]]:
        """Rows of ids."""
        return {"ids": [list(row) for row in self._run.source_tokenizer.encode(list(texts))]}

    def decode(self, answers: list[Any]) -> list[str]:
        """Labels are text already."""
        return list(answers)

    def meaning(self) -> str:
        """What goes in and what comes out."""
        return _LABEL.format(limit=self.limit, count=len(self._run.labels.names))

    def _parts(self) -> tuple[Any, ...]:
        characters = CHARACTERS_PER_TOKEN * self.limit
        return self._run.source_tokenizer, self._run.labels, self.limit, characters


class ServedTags(ServedLabels):
    """Text in, the tags of its words out; see `Served`.

    Args:
        run: Opened, with weights.
        settings: Its own.
    """

    outputs: tuple[str, ...] = ("tags", "truncated")
    verb = "tags"

    def inputs(self) -> list[str]:
        """Those that were validated on and are not cut: of the others a server tags less."""
        texts = super().inputs()
        rows = word_tokens(self._run.source_tokenizer, texts)
        return [
            text
            for text, row in zip(texts, rows, strict=True)
            if len(row.ids) <= self.limit and len(text) <= CHARACTERS_PER_TOKEN * self.limit
        ]

    def answers(self, model: Any, texts: Sequence[str]) -> list[str]:
        """Their tags."""
        return Tagger.of_run(self._run, model)(texts)

    def graph(self, model: Any) -> Any:
        """A `TagGraph`."""
        return TagGraph(model, *self._parts())

    def feeds(self, texts: Sequence[str]) -> dict[str, list[Any]]:
        """Rows of ids, and where words begin."""
        rows = word_tokens(self._run.source_tokenizer, texts)
        begins = [[place in row.begins for place in range(len(row.ids))] for row in rows]
        return {"ids": [row.ids for row in rows], "begins": begins}

    def decode(self, answers: list[Any]) -> list[str]:
        """A tag for each place, "" where no word begins, to a line of tags."""
        return [" ".join(tag for tag in row if tag) for row in answers]

    def meaning(self) -> str:
        """What goes in and what comes out."""
        return _TAGS.format(limit=self.limit)
