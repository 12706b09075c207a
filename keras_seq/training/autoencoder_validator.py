"""Measures a variational autoencoder in the middle of its training, and shows what it writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from keras_seq import backend
from keras_seq.data import TokenCorpus, sequential_batches
from keras_seq.inference.autoencoder import Autoencoder
from keras_seq.run import Run
from keras_seq.training.averaging import averaged_weights
from keras_seq.training.event_log import EventLog
from keras_seq.training.feed import batch_shapes
from keras_seq.training.latent_evaluation import make_latent_evaluation
from keras_seq.training.rounding import rounded


class AutoencoderValidator:
    """The bound on a run's validation text and what its codes carry, with the averaged weights.

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
        model: Any,
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
        self._evaluate = make_latent_evaluation(model)
        self._units = int(model.posterior.output["mean"].shape[-1])
        settings = run.settings
        self._autoencoder = Autoencoder(
            model, run.target_tokenizer, settings.search, settings.data.max_target_length
        )
        texts, _ = run.valid_lines()
        count = self._training.sample_count
        # The same few lines at every validation, spread over the set.
        every = max(1, -(-len(texts) // max(count, 1)))
        self._shown = [*range(0, len(texts), every)][:count]
        self._texts = [texts[i] for i in self._shown]
        self.signature = ""
        monitor = self._training.monitor
        self.monitor: str = "perplexity" if monitor == "auto" else monitor

    def __call__(self, step: int, minutes: float) -> dict[str, float]:
        """Validates.

        Args:
            step: Updates done.
            minutes: Minutes trained.

        Returns:
            What `make_latent_evaluation` gives.
        """
        backend.sync_variables(self._fitted)
        batches = sequential_batches(
            self._corpus, batch_tokens=self._training.batch_tokens, shapes=batch_shapes()
        )
        with averaged_weights(self._fitted):
            results = self._evaluate(batches)
            written = self._autoencoder.reconstruct(self._texts) if self._texts else []
            drawn = self._autoencoder.sample() if self._texts else []
        self._notice(
            f"validation at step {step:,}, {minutes:.1f} min: reconstruction "
            f"{results['reconstruction']:.3f} a token "
            f"(perplexity {results['reconstruction_perplexity']:.2f}), "
            f"KL {results['kl']:.2f} and bound {results['elbo']:.2f} a line "
            f"(perplexity at most {results['perplexity']:.2f}), "
            f"{results['active_units']:.0f} of {self._units} units active, "
            f"mutual information {results['mutual_information']:.2f}"
        )
        lines = []
        for number, text, again in zip(self._shown, self._texts, written, strict=True):
            lines += [
                f"  step {step:,}, line {number + 1}",
                f"    text    {text}",
                f"    written {again}",
            ]
        lines += [f"  step {step:,}, drawn: {text}" for text in drawn]
        for line in lines:
            self._notice(line)
        self._run.logs.append_samples("\n".join(lines))
        self._events.write_samples(step, [*zip(self._texts, written, strict=True)])
        self._run.logs.append_metrics(
            {
                "kind": "validation",
                "step": step,
                **rounded({"minutes": minutes, **results}),
                "monitor": self.monitor,
            }
        )
        return results
