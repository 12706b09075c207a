"""What a server is told of variational autoencoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras_seq.inference.autoencoder import Autoencoder
from keras_seq.inference.hypothesis import CHARACTERS_PER_TOKEN
from keras_seq.run import Run
from keras_seq.serving.reconstruction_graph import ReconstructionGraph
from keras_seq.serving.served_search import ServedTranslation
from keras_seq.settings import Settings

_MEANING = """\
`serving_default`, the signature used above: `text`, one string a row. For each row:

* `text`: what its code is written down as; empty for a blank text.
* `score`: its log-probability, normalised by its length as the search was told.
* `truncated`: true if the text was longer than {limit} tokens and was cut there, or if what is
  written met its own limit ({max_length} tokens).

`decode`: `latent`, a code of {units} numbers a row, such as one drawn from a normal distribution of
mean 0 and variance 1. For each row its `text` and `score`.

"""


class ServedReconstruction(ServedTranslation):
    """Text in, what its code says out; see `Served`.

    Args:
        run: Opened, with weights.
        settings: Its own, or with another search.
    """

    outputs: tuple[str, ...] = ("text", "score", "truncated")
    verb = "writes"

    def __init__(self, run: Run, settings: Settings) -> None:
        # A code has no length that a text's could be compared with.
        search = settings.search
        longest = {"max_length_ratio": 0.0, "max_length_extra": search.max_length}
        search = search.model_copy(update={"min_length_ratio": 0.0, **longest})
        super().__init__(run, settings.model_copy(update={"search": search}))
        self.limit = settings.data.max_target_length

    def answers(self, model: Any, texts: Sequence[str]) -> list[str]:
        """What the run makes of texts."""
        tokenizer, search = self._run.target_tokenizer, self._settings.search
        return Autoencoder(model, tokenizer, search, self.limit).reconstruct(texts)

    def graph(self, model: Any) -> Any:
        """A `ReconstructionGraph`."""
        return ReconstructionGraph(
            model,
            self._run.target_tokenizer,
            self._settings.search,
            self.limit,
            CHARACTERS_PER_TOKEN * self.limit,
        )

    def meaning(self) -> str:
        """What goes in and what comes out."""
        return (
            _MEANING.format(
                limit=self.limit,
                max_length=self._settings.search.max_length,
                units=self._settings.to_dict()["model"]["latent_units"],
            )
            + self._searched()
        )
