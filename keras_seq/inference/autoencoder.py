"""Text through a vector and back: a trained variational autoencoder."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from keras_seq import backend
from keras_seq.data.ids import EOS
from keras_seq.inference.hypothesis import Found, Hypothesis, encode_sources, hypotheses_of
from keras_seq.inference.search import make_search
from keras_seq.run import Run
from keras_seq.run.models import load_model
from keras_seq.search import SearchResult
from keras_seq.settings import SearchSettings
from keras_seq.text import Tokenizer

# Shape letters: N texts, Z latent units.


class Autoencoder:
    """Texts as vectors, and vectors as texts, by a trained variational autoencoder.

    Made by `Autoencoder.load`, or from parts. What a text or a vector gives does not depend
    on the others.

    Args:
        model: A `models.SequenceVAE`.
        tokenizer: Turns lines into ids and back.
        search: Settings of the search that writes a vector's text.
        max_length: Of longer texts so many tokens are read.

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

    def __init__(
        self, model: Any, tokenizer: Tokenizer, search: SearchSettings, max_length: int = 200
    ) -> None:
        self.model = model
        self._tokenizer = tokenizer
        self._size = search.batch_size
        self._max_length = max_length
        self._units = int(model.posterior.output["mean"].shape[-1])

        def mean(source: Any) -> Any:
            return model.posterior(source, training=False)["mean"]

        self._mean = backend.compiled(mean, model.variables, [2])
        find = make_search(model.from_latent, search, tokenizer)
        self._search = backend.compiled(find, model.variables, [2], ["float32"])

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        which: str | int = "best",
        notice: Callable[[str], None] | None = None,
        **search: Any,
    ) -> Autoencoder:
        """Loads the autoencoder of a run directory.

        Args:
            path: The run directory, of task "vae".
            which: Checkpoint: `"best"`, `"latest"`, or the step of a stored one.
            notice: Called with a line for each damaged checkpoint passed over;
                by default it is a warning.
            **search: Settings of the search to use in place of the run's, such
                as `beam_size=1`; see `SearchSettings`.

        Raises:
            InputError: If `path` is not a run with a trained autoencoder.
            SettingsError: If a search setting is unknown or out of bounds.
        """
        run = Run.open(path, notice=notice)
        run.require_task("vae")
        settings = run.settings.with_search(search)
        run.require_weights(which)
        return cls(
            load_model(run, which),
            run.target_tokenizer,
            settings.search,
            settings.data.max_target_length,
        )

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """The mean of each text's distribution over codes, float32 `(N, Z)`.

        Args:
            texts: Lines of text.

        Raises:
            TypeError: If `texts` is one string.
        """
        return self._encode(texts)[0]

    def decode(self, latent: np.ndarray) -> list[list[Hypothesis]]:
        """The `n_best` texts of each code, best first.

        Args:
            latent: Float array `(N, Z)`.

        Raises:
            ValueError: If it is of another shape, or not finite.
        """
        latent = np.asarray(latent, np.float32)
        if latent.ndim != 2 or latent.shape[1] != self._units:
            raise ValueError(
                f"`latent` must be of shape (texts, {self._units}), received {latent.shape}."
            )
        if not np.isfinite(latent).all():
            raise ValueError("`latent` must be finite, received NaN or infinity in it.")
        results = []
        for start in range(0, len(latent), self._size):
            rows = latent[start : start + self._size]
            # One shape for all calls where each costs a compilation.
            padded = np.zeros((self._size, self._units), np.float32)
            padded[: len(rows)] = rows
            given = padded if backend.wants_static_shapes() else rows
            found = SearchResult(*map(keras.ops.convert_to_numpy, self._search(given)))
            for row in range(len(rows)):
                results.append(self._texts(SearchResult(*(part[row] for part in found))))
        return results

    def reconstruct(self, texts: Sequence[str]) -> list[str]:
        """Each text as its code's mean is written down; "" for a blank one.

        Raises:
            TypeError: If `texts` is one string.
        """
        return [found[0].text if found else "" for found in self.reconstruct_n_best(texts)]

    def reconstruct_n_best(self, texts: Sequence[str]) -> list[list[Hypothesis]]:
        """As `reconstruct`, with `n_best` texts of each and their scores; none of a blank one."""
        codes, cut = self._encode(texts)
        real = [i for i, text in enumerate(texts) if text.strip()]
        results: list[list[Hypothesis]] = [[] for _ in texts]
        for i, found in zip(real, self.decode(codes[real]), strict=True):
            results[i] = [one._replace(truncated=one.truncated or cut[i]) for one in found]
        return results

    def sample(self, count: int = 1, seed: int = 0) -> list[str]:
        """Texts of codes drawn from the prior, N(0, 1).

        Args:
            count: Positive integer.
            seed: Non-negative integer; of two samples with one seed, the longer begins as the
                shorter.

        Raises:
            ValueError: If `count` is not positive.
        """
        if count < 1:
            raise ValueError(f"`count` must be positive, received {count!r}.")
        codes = np.random.default_rng(seed).standard_normal((count, self._units), np.float32)
        return [found[0].text if found else "" for found in self.decode(codes)]

    def interpolate(self, first: str, second: str, steps: int = 5) -> list[str]:
        """Two texts, reconstructed, and those on the straight way between their codes.

        Args:
            first, second: Lines of text.
            steps: Integer, how many come between the two.

        Raises:
            ValueError: If `steps` is negative.
        """
        if steps < 0:
            raise ValueError(f"`steps` must not be negative, received {steps!r}.")
        one, other = self.encode([first, second])
        shares = np.linspace(0, 1, steps + 2, dtype=np.float32)[:, None]
        codes = (1 - shares) * one + shares * other
        return [found[0].text if found else "" for found in self.decode(codes)]

    def _encode(self, texts: Sequence[str]) -> tuple[np.ndarray, list[bool]]:
        if isinstance(texts, str):
            raise TypeError("`texts` must be a list of strings, received one; pass [text].")
        ids, cut = encode_sources(texts, self._tokenizer, self._max_length)
        codes = np.zeros((len(ids), self._units), np.float32)
        # Those of like length together.
        order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
        for start in range(0, len(order), self._size):
            rows = order[start : start + self._size]
            batch = backend.padded([[*ids[i], EOS] for i in rows], self._size, 16)
            codes[rows] = keras.ops.convert_to_numpy(self._mean(batch))[: len(rows)]
        return codes, cut

    def _texts(self, row: SearchResult) -> list[Hypothesis]:
        found = [
            Found(row.tokens[n, :length], float(row.scores[n]), bool(row.truncated[n]))
            for n, length in enumerate(row.lengths)
            if length
        ]
        return hypotheses_of(found, self._tokenizer)
