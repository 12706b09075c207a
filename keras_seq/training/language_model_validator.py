"""Measures a language model in the middle of its training, and shows what it says."""

from __future__ import annotations

from collections.abc import Callable

import keras

from keras_seq import backend
from keras_seq.data import TokenCorpus, sequential_batches
from keras_seq.inference.generator import Generator
from keras_seq.inference.hypothesis import Hypothesis
from keras_seq.run import Run
from keras_seq.training.averaging import averaged_weights
from keras_seq.training.evaluation import make_evaluation
from keras_seq.training.event_log import EventLog
from keras_seq.training.feed import batch_shapes
from keras_seq.training.rounding import rounded


class LanguageModelValidator:
    """Perplexity of a run's validation text, with the averaged weights.

    Args:
        run: A prepared run; metrics and samples are appended to its logs.
        model: Its model.
        fitted: What is compiled and trained, of the same weights.
        notice: Called with each line for the user.
        events: Where samples go.

    Attributes:
        signature: "", for there is no score of text.
        monitor: The key of the value that decides which checkpoint is best.
    """

    tie_break: str | None = None
    reason = ""

    def __init__(
        self,
        run: Run,
        model: keras.Model,
        fitted: keras.Model,
        notice: Callable[[str], None],
        events: EventLog,
    ) -> None:
        self._run = run
        self._fitted = fitted
        self._notice = notice
        self._events = events
        self._training = run.settings.training
        self._corpus = TokenCorpus.open(run.valid_directory)
        self._evaluate = make_evaluation(model)
        self._generator = None
        if count := self._training.sample_count:
            search = run.settings.search
            beam = max(search.beam_size, count)
            search = search.model_copy(update={"n_best": count, "beam_size": beam, "batch_size": 1})
            self._generator = Generator(model, run.target_tokenizer, search)
        self.signature = ""
        monitor = self._training.monitor
        self.monitor: str = "perplexity" if monitor == "auto" else monitor

    def __call__(self, step: int, minutes: float) -> dict[str, float]:
        """Validates.

        Args:
            step: Updates done.
            minutes: Minutes trained.

        Returns:
            `loss`, `perplexity` and `accuracy`.
        """
        backend.sync_variables(self._fitted)
        batches = sequential_batches(
            self._corpus, batch_tokens=self._training.batch_tokens, shapes=batch_shapes()
        )
        with averaged_weights(self._fitted):
            results = self._evaluate(batches)
            texts = [found.text for found in self._generate()]
        self._notice(
            f"validation at step {step:,}, {minutes:.1f} min: loss {results['loss']:.3f}, "
            f"perplexity {results['perplexity']:.2f}, token accuracy {results['accuracy']:.3f}"
        )
        lines = [f"  step {step:,}, text {number}: {text}" for number, text in enumerate(texts, 1)]
        for line in lines:
            self._notice(line)
        self._run.logs.append_samples("\n".join(lines))
        self._events.write_samples(step, [(text,) for text in texts])
        self._run.logs.append_metrics(
            {
                "kind": "validation",
                "step": step,
                **rounded({"minutes": minutes, **results}),
                "monitor": self.monitor,
            }
        )
        return results

    def _generate(self) -> list[Hypothesis]:
        return self._generator.generate([""])[0] if self._generator else []
