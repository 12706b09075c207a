"""Text from a trained language model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

from keras_seq.inference.hypothesis import Hypothesis, best_texts, decode_hypotheses
from keras_seq.inference.id_search import IdSearch
from keras_seq.inference.predictor import check_is_list, predict_by_length
from keras_seq.inference.run_predictor import RunPredictor
from keras_seq.run import Run
from keras_seq.settings import SearchSettings
from keras_seq.text import Tokenizer


class Generator(RunPredictor):
    """Continues prompts with a trained language model.

    `Generator.load` loads a trained model. The first call compiles the search. The texts of a
    prompt do not depend on the other prompts.

    Args:
        model: A language model of `keras_seq.models`, or an `Ensemble`.
        tokenizer: The tokenizer of the texts.
        search: Settings of the search.

    Example:

    >>> generator = keras_seq.Generator.load("runs/lm", top_p=0.9, seed=1)  # doctest: +SKIP
    >>> generator(["A man"])  # doctest: +SKIP
    ['A man is playing a guitar on a bench.']
    """

    task = "language-model"

    def __init__(self, model: Any, tokenizer: Tokenizer, search: SearchSettings) -> None:
        self.model = model
        self._tokenizer = tokenizer
        self._search = IdSearch(model, search, tokenizer)

    @classmethod
    def of_run(
        cls, run: Run, model: Any, search: SearchSettings | None = None, **options: Any
    ) -> Self:
        return cls(model, run.target_tokenizer, search or run.settings.search, **options)

    def __call__(self, prompts: Sequence[str]) -> list[str]:
        """Returns each prompt with its best continuation. A prompt may be empty."""
        return best_texts(self.generate(prompts))

    def generate(self, prompts: Sequence[str]) -> list[list[Hypothesis]]:
        """Returns `n_best` texts for each prompt. Beam search sorts them, most probable first.

        Texts and log-probabilities include the prompt. A prompt is a line of text that should end
        at the end of a word, or "". Raises InputError if the tokens of a prompt fill all of
        `search.max_length`.
        """
        check_is_list("prompts", prompts)

        def search(ids: list[list[int]]) -> Iterable[list[Hypothesis]]:
            # The source of a language model is empty.
            return self._search([[] for _ in ids], ids)

        results = predict_by_length(self._tokenizer.encode(prompts), search)
        return [decode_hypotheses(row, self._tokenizer) for row in results]
