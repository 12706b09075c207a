"""A variational autoencoder as one TensorFlow module: text through its code, and codes to text."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from keras_seq.inference.search import make_search
from keras_seq.serving.search_graph import SearchGraph
from keras_seq.serving.text_graph import TextGraph
from keras_seq.settings import SearchSettings
from keras_seq.text import Tokenizer

# Shape letters: B batch, Z latent units, N n-best.


class ReconstructionGraph(tf.Module):
    """What a SavedModel of a `models.SequenceVAE` holds; a `SearchGraph`, and one more function.

    Args:
        model: The model, or an `Ensemble` of such, on the TensorFlow backend.
        tokenizer: Turns text into ids and back.
        search: Settings of the search.
        max_length: Longer texts are cut to so many tokens.
        max_characters: Longer texts are cut before they are tokenized.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Tokenizer,
        search: SearchSettings,
        max_length: int,
        max_characters: int,
    ) -> None:
        super().__init__()
        self.graph = SearchGraph(
            model, tokenizer, tokenizer, search, max_length, max_characters, output="text"
        )
        self._more = {}
        if hasattr(model, "from_latent"):
            units = int(model.posterior.output["mean"].shape[-1])
            find = make_search(model.from_latent, search, tokenizer)
            spec = tf.TensorSpec([None, units], tf.float32, name="latent")

            @tf.function(input_signature=[spec], autograph=False)
            def decode(latent: Any) -> dict[str, Any]:
                found = find(latent)
                texts = TextGraph(tokenizer).decode(found.tokens[:, 0])
                return {"text": texts, "score": found.scores[:, 0]}

            self._more["decode"] = decode

    def signatures(self, *, text: bool = True) -> dict[str, Any]:
        """The functions that a server offers, by name; see `SearchGraph.signatures`."""
        return {**self.graph.signatures(text=text), **(self._more if text else {})}
