"""Converts texts to vectors and vectors to texts with a variational autoencoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import keras
import numpy as np

from keras_seq import backend
from keras_seq.inference.hypothesis import Hypothesis, best_texts, decode_hypotheses
from keras_seq.inference.id_search import hypotheses_of_row
from keras_seq.inference.predictor import check_is_list, encode_sources, predict_by_length
from keras_seq.inference.row_memory import search_memory
from keras_seq.inference.run_predictor import RunPredictor
from keras_seq.inference.search import make_search
from keras_seq.run import Run
from keras_seq.run.memory import fitting_rows
from keras_seq.settings import SearchSettings
from keras_seq.text import EOS_ID, Tokenizer

# Shape letters: N texts, Z latent units.


class Autoencoder(RunPredictor):
    """Encodes texts to latent codes and decodes codes to texts.

    `Autoencoder.load` loads a trained model. The result for a text or a code does not depend on
    other texts or codes.

    Args:
        model: A `models.SequenceVAE`.
        tokenizer: The tokenizer of the texts.
        search: Settings of the search that decodes a code.
        max_length: Maximum number of tokens per text; longer texts are truncated.

    Example:

    >>> from keras_seq.models import SequenceVAE
    >>> tokenizer = Tokenizer.train(["A dog runs.", "Two men sit."], size=280)
    >>> model = SequenceVAE(tokenizer.vocabulary_size, latent_units=3, embedding_units=4,
    ...     encoder_units=4, decoder_units=4)
    >>> autoencoder = Autoencoder(model, tokenizer, SearchSettings(max_length=5))
    >>> autoencoder.encode(["A dog runs.", "Two men sit."]).shape
    (2, 3)
    >>> trained = keras_seq.Autoencoder.load("runs/vae")  # doctest: +SKIP
    >>> trained.interpolate("A dog runs.", "Two men sit.", steps=1)  # doctest: +SKIP
    ['A dog runs.', 'A man runs.', 'Two men sit.']
    """

    task = "vae"
    supports_ensembles = False

    def __init__(
        self, model: Any, tokenizer: Tokenizer, search: SearchSettings, max_length: int = 200
    ) -> None:
        self.model = model
        self._tokenizer = tokenizer
        self._search_settings = search
        self._batch_size = search.batch_size
        self._max_length = max_length
        self._units = int(model.posterior.output["mean"].shape[-1])

        def mean(source: Any) -> Any:
            return model.posterior(source, training=False)["mean"]

        self._mean = backend.compiled(mean, model.variables, [2])
        decode = make_search(model.from_latent, search, tokenizer)
        self._decode = backend.compiled(decode, model.variables, [2], ["float32"])

    @classmethod
    def of_run(
        cls, run: Run, model: Any, search: SearchSettings | None = None, **options: Any
    ) -> Self:
        length = run.settings.data.max_target_length
        return cls(model, run.target_tokenizer, search or run.settings.search, length, **options)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the mean of the posterior of each text, float32 `(N, Z)`."""
        return self._encode(texts)[0]

    def decode(self, latent: np.ndarray) -> list[list[Hypothesis]]:
        """Returns the `n_best` texts of each latent code of a float array `(N, Z)`, best first.

        Raises ValueError if the shape is wrong, or a number is not finite.
        """
        latent = np.asarray(latent, np.float32)
        if latent.ndim != 2 or latent.shape[1] != self._units:
            raise ValueError(
                f"`latent` must be of shape (texts, {self._units}), received {latent.shape}."
            )
        if not np.isfinite(latent).all():
            raise ValueError("`latent` must be finite, received NaN or infinity in it.")
        results = []
        size = self._rows_of_a_search()
        for start in range(0, len(latent), size):
            codes = latent[start : start + size]
            count = len(codes)
            if backend.wants_static_shapes():
                codes = np.pad(codes, ((0, size - count), (0, 0)))
            outputs = keras.tree.map_structure(keras.ops.convert_to_numpy, self._decode(codes))
            results += [
                decode_hypotheses(hypotheses_of_row(outputs, row), self._tokenizer)
                for row in range(count)
            ]
        return results

    def reconstruct(self, texts: Sequence[str]) -> list[str]:
        """Encodes each text and decodes the mean of its posterior; "" for a blank text."""
        return best_texts(self.reconstruct_n_best(texts))

    def reconstruct_n_best(self, texts: Sequence[str]) -> list[list[Hypothesis]]:
        """Returns the `n_best` reconstructions of each text; none for a blank text."""
        codes, truncated = self._encode(texts)
        filled = [i for i, text in enumerate(texts) if text.strip()]
        results: list[list[Hypothesis]] = [[] for _ in texts]
        for i, hypotheses in zip(filled, self.decode(codes[filled]), strict=True):
            results[i] = [
                hypothesis._replace(truncated=hypothesis.truncated or truncated[i])
                for hypothesis in hypotheses
            ]
        return results

    def sample(self, count: int = 1, seed: int = 0) -> list[str]:
        """Decodes `count` samples from the prior, N(0, 1). Raises ValueError if `count` is below 1.

        With the same non-negative `seed`, a larger `count` begins with the same texts.
        """
        if count < 1:
            raise ValueError(f"`count` must be positive, received {count!r}.")
        codes = np.random.default_rng(seed).standard_normal((count, self._units), np.float32)
        return best_texts(self.decode(codes))

    def interpolate(self, first: str, second: str, steps: int = 5) -> list[str]:
        """Decodes `steps` points on the line between the codes of two texts.

        The first and the last of the `steps + 2` texts are the reconstructions. Raises ValueError
        if `steps` is negative.
        """
        if steps < 0:
            raise ValueError(f"`steps` must not be negative, received {steps!r}.")
        start, end = self.encode([first, second])
        weights = np.linspace(0, 1, steps + 2, dtype=np.float32)[:, None]
        return best_texts(self.decode((1 - weights) * start + weights * end))

    def _rows_of_a_search(self) -> int:
        count, steps = self._search_settings.hypotheses, self._search_settings.max_length
        memory = search_memory(
            self.model.from_latent, 1, count, self._tokenizer.vocabulary_size, steps
        )
        what = f"a search with {count:,} hypotheses"
        return fitting_rows(memory, self._batch_size, 1, what, "lower the number of hypotheses")

    def _encode(self, texts: Sequence[str]) -> tuple[np.ndarray, list[bool]]:
        check_is_list("texts", texts)
        ids, truncated = encode_sources(texts, self._tokenizer, self._max_length)
        codes = predict_by_length(ids, self._predict_mean, self._batch_size)
        return np.array(codes, np.float32).reshape(len(codes), self._units), truncated

    def _predict_mean(self, ids: list[list[int]]) -> np.ndarray:
        batch = backend.padded([[*row, EOS_ID] for row in ids], self._batch_size, 16)
        mean: np.ndarray = keras.ops.convert_to_numpy(self._mean(batch))
        return mean[: len(ids)]
