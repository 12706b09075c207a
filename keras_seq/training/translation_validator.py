"""Measures a model that translates in the middle of its training, and shows what it can do."""

from __future__ import annotations

from collections.abc import Callable

import keras

from keras_seq import backend
from keras_seq.callbacks.attention_snapshots import attention_picture
from keras_seq.data import TokenCorpus, sequential_batches
from keras_seq.inference.translator import Translator
from keras_seq.run import Run
from keras_seq.training.attention_view import AttentionView
from keras_seq.training.averaging import averaged_weights
from keras_seq.training.evaluation import make_evaluation
from keras_seq.training.event_log import EventLog
from keras_seq.training.feed import batch_shapes
from keras_seq.training.judging import judging_of
from keras_seq.training.rounding import rounded

Notice = Callable[[str], None]


class TranslationValidator:
    """Loss, accuracy and scores of a run's validation text, with the averaged weights.

    Args:
        run: A prepared run; metrics and samples are appended to its logs.
        model: Its model.
        fitted: What is compiled and trained, of the same weights.
        notice: Called with each line for the user.
        events: Where samples and a picture of attention go.
        resumed_monitor: The monitor of the checkpoint that the training resumes from, or None.

    Attributes:
        signature: The signature of the last score of the monitor, "" before it.
        monitor: The key of the value that decides which checkpoint is best.
        tie_break: The key of the error rate that decides between equal values, or None.
        reason: Why this monitor was chosen, "" if the settings name it.

    Raises:
        InputError: If the tokenizer of BLEU needs a package or a file that is missing.
    """

    def __init__(
        self,
        run: Run,
        model: keras.Model,
        fitted: keras.Model,
        notice: Notice,
        events: EventLog,
        resumed_monitor: str | None = None,
    ) -> None:
        _, references = run.valid_lines()
        self._judging = judging_of(run.settings, references, resumed_monitor)
        self.monitor = self._judging.monitor
        self.tie_break = self._judging.tie_break
        self.reason = self._judging.reason
        self._warned = False
        self._run = run
        self._fitted = fitted
        self._notice = notice
        self._events = events
        self._training = run.settings.training
        self._corpus = TokenCorpus.open(run.valid_directory)
        self._evaluate = make_evaluation(model)
        search = run.settings.search.model_copy(
            update={"beam_size": self._training.validation_beam_size, "n_best": 1, "batch_size": 64}
        )
        self._translator = Translator(
            model,
            run.source_tokenizer,
            run.target_tokenizer,
            search,
            run.settings.data.max_source_length,
        )
        self._attend = AttentionView(
            model,
            run.source_tokenizer,
            run.target_tokenizer,
            run.settings.data.max_source_length,
        )
        self.signature = ""
        for line in self._judging.notices():
            notice(line)

    def __call__(self, step: int, minutes: float) -> dict[str, float]:
        """Validates.

        Args:
            step: Updates done.
            minutes: Minutes trained.

        Returns:
            `loss`, `perplexity`, `accuracy` and two metrics of the decoded text.
        """
        backend.sync_variables(self._fitted)
        sources, references = self._run.valid_lines()
        batches = sequential_batches(
            self._corpus, batch_tokens=self._training.batch_tokens, shapes=batch_shapes()
        )
        with averaged_weights(self._fitted):
            results = self._evaluate(batches)
            hypotheses = self._translator(sources)
            samples = _samples(sources, references, hypotheses, self._training.sample_count)
            # On every host, or none: they compute together.
            views = samples[:1] if self._events.installed else []
            pictures = [attention_picture(self._attend(view[1], view[3])) for view in views]
        scores = self._judging.scores(hypotheses, references)
        results |= {name: score.value for name, score in scores.items()}
        signature = next(iter(scores.values())).signature
        self.signature = signature if self.monitor in scores else ""
        shown = ", ".join(f"{score.name} = {score.value:.2f}" for score in scores.values())
        self._notice(
            f"validation at step {step:,}, {minutes:.1f} min: loss {results['loss']:.3f}, "
            f"perplexity {results['perplexity']:.2f}, token accuracy {results['accuracy']:.3f}, "
            f"{shown} {signature}"
        )
        contradiction = self._judging.contradiction(results)
        if contradiction and not self._warned:
            self._warned = True
            self._notice(contradiction)
        lines = _sample_lines(step, samples)
        for line in lines:
            self._notice(line)
        self._run.logs.append_samples("\n".join(lines))
        self._events.write_samples(step, [sample[1:] for sample in samples])
        self._events.write_pictures(step, "attention", pictures)
        self._run.logs.append_metrics(
            {
                "kind": "validation",
                "step": step,
                **rounded({"minutes": minutes, **results}),
                "monitor": self.monitor,
                "signature": signature,
            }
        )
        return results


def _samples(
    sources: list[str], references: list[str], hypotheses: list[str], count: int
) -> list[tuple[int, str, str, str]]:
    """The same few lines at every validation, spread over the set."""
    return [
        (i + 1, sources[i], references[i], hypotheses[i])
        for i in range(0, len(sources), max(1, -(-len(sources) // max(count, 1))))
    ][:count]


def _sample_lines(step: int, samples: list[tuple[int, str, str, str]]) -> list[str]:
    lines = []
    for number, source, reference, hypothesis in samples:
        lines += [
            f"  step {step:,}, line {number}",
            f"    source    {source}",
            f"    reference {reference}",
            f"    model     {hypothesis}",
        ]
    return lines
