"""Base class of the exporters of models that read text."""

from collections.abc import Sequence
from typing import Any

from keras_seq.inference.predictor import CHARACTERS_PER_TOKEN
from keras_seq.run import Run
from keras_seq.settings import Settings
from keras_seq.text import FeatureTokenizer, InputError, split_features, split_language


class TextExporter:
    """Base class of exporters of models that read text; see `Exporter`."""

    def __init__(self, run: Run, settings: Settings) -> None:
        self._run = run
        self._settings = settings
        self.limit = settings.data.max_source_length

    @property
    def _characters(self) -> int:
        """The maximum number of characters of a text that a server reads."""
        return CHARACTERS_PER_TOKEN * self.limit

    def inputs(self) -> list[str]:
        return self._run.valid_lines()[0] if self._run.has_valid_lines else []

    def requests(self, texts: Sequence[str]) -> dict[str, list[str]]:
        tokenizer = self._run.source_tokenizer
        if names := self._run.languages:
            tagged = [split_language(text) for text in texts]
            languages = [language or names[0] for language, _ in tagged]
            return {"text": [text for _, text in tagged], "target_language": languages}
        if not isinstance(tokenizer, FeatureTokenizer):
            return {"text": list(texts)}
        text, features = split_features(texts)
        return {"text": text, "features": features}

    def encode(self, texts: Sequence[str]) -> dict[str, list[Any]]:
        return {"ids": [list(row) for row in self._run.source_tokenizer.encode(list(texts))]}

    def longest_input(self, max_input: float | None) -> int:
        if max_input is None:
            return self.limit
        if not 1 <= max_input <= self.limit:
            raise InputError(
                f"max_input: received {max_input:g}, expected 1 to {self.limit} tokens, the "
                "maximum of the run"
            )
        return int(max_input)

    def length(self, text: str) -> int:
        return len(self.encode([text])["ids"][0])
