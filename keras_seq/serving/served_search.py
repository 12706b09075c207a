"""What a server is told of runs that write: translations, and language models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras_seq.inference.generator import Generator
from keras_seq.inference.hypothesis import CHARACTERS_PER_TOKEN
from keras_seq.inference.translator import Translator
from keras_seq.run import Run
from keras_seq.serving.generation_graph import GenerationGraph
from keras_seq.serving.search_graph import SearchGraph
from keras_seq.settings import Settings

_SEARCHED = """\
`n_best`, with `"signature_name": "n_best"` beside `"instances"` in REST or
`request.model_spec.signature_name = "n_best"` in gRPC: the same three, {n_best} for each row, best
first. Where fewer were found the rest is `""` with a score of -1e30.

`ids`, for those who tokenize outside: `ids`, a row of token ids for each text, padded with 0 to
equal lengths. For each row {n_best} of `ids` (padded with 0), `length`, `score` and `truncated`.
With batching all requests must be of one width: the server joins rows, but cannot pad them with 0.

The search keeps {beam_size} hypotheses."""

_TRANSLATION = """\
`serving_default`, the signature used above: `text`, one string a row. For each row:

* `translation`: the best translation found; empty for a blank text.
* `score`: its log-probability, normalised by its length as the search was told. It ranks the
  translations of one text; it does not compare texts.
* `truncated`: true if the text was longer than {max_source_length} tokens and was cut there, or if
  the translation met its own limit ({max_length} tokens, fewer for short texts).

"""

_TEXT = """\
`serving_default`, the signature used above: `text`, one prompt a row, empty to begin with nothing.
For each row:

* `text`: the prompt and what follows it. The same prompt gets the same text each time: what is
  drawn by chance goes by the seed of the export.
* `score`: its log-probability, normalised by its length as the search was told.
* `truncated`: true if the prompt fills the limit of {max_length} tokens and was cut there, or if
  the text met that limit before it ended.

"""


class ServedTranslation:
    """Text in, its translation out; see `Served`.

    Args:
        run: Opened, with weights.
        settings: Its own, or with another search.
    """

    outputs: tuple[str, ...] = ("translation", "score", "truncated")
    verb = "translates"

    def __init__(self, run: Run, settings: Settings) -> None:
        self._run = run
        self._settings = settings
        self.limit = settings.data.max_source_length

    def inputs(self) -> list[str]:
        """The sources that were validated on."""
        return self._run.valid_lines()[0]

    def answers(self, model: Any, texts: Sequence[str]) -> list[str]:
        """Their translations."""
        return Translator(
            model,
            self._run.source_tokenizer,
            self._run.target_tokenizer,
            self._settings.search,
            self.limit,
        )(texts)

    def graph(self, model: Any) -> Any:
        """A `SearchGraph`."""
        return SearchGraph(
            model,
            self._run.source_tokenizer,
            self._run.target_tokenizer,
            self._settings.search,
            self.limit,
            CHARACTERS_PER_TOKEN * self.limit,
        )

    def feeds(self, texts: Sequence[str]) -> dict[str, list[Any]]:
        """Rows of ids."""
        return {"ids": [list(row) for row in self._run.source_tokenizer.encode(list(texts))]}

    def decode(self, answers: list[Any]) -> list[str]:
        """Text of rows of ids."""
        return self._run.target_tokenizer.decode(answers)

    def meaning(self) -> str:
        """What goes in and what comes out."""
        said = _TRANSLATION.format(
            max_source_length=self.limit, max_length=self._settings.search.max_length
        )
        return said + self._searched()

    def _searched(self) -> str:
        search = self._settings.search
        return _SEARCHED.format(n_best=search.n_best, beam_size=search.beam_size)


class ServedGeneration(ServedTranslation):
    """A prompt in, text out; see `Served`.

    Args:
        run: Opened, with weights.
        settings: Its own, or with another search.
    """

    outputs: tuple[str, ...] = ("text", "score", "truncated")
    verb = "writes"

    def __init__(self, run: Run, settings: Settings) -> None:
        super().__init__(run, settings)
        self.limit = settings.search.max_length

    def inputs(self) -> list[str]:
        """The beginnings of lines that were validated on, as prompts."""
        return [" ".join(line.split()[:2]) for line in self._run.valid_lines()[1]]

    def answers(self, model: Any, texts: Sequence[str]) -> list[str]:
        """What the run makes of prompts."""
        return Generator(model, self._run.target_tokenizer, self._settings.search)(texts)

    def graph(self, model: Any) -> Any:
        """A `GenerationGraph`."""
        return GenerationGraph(
            model,
            self._run.target_tokenizer,
            self._settings.search,
            CHARACTERS_PER_TOKEN * self.limit,
        )

    def meaning(self) -> str:
        """What goes in and what comes out."""
        return _TEXT.format(max_length=self._settings.search.max_length) + self._searched()
