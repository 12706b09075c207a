"""Measures a classifier or a tagger in the middle of its training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_seq import backend
from keras_seq.data import TokenCorpus, sequential_batches
from keras_seq.inference.classifier import Classifier
from keras_seq.inference.tagger import Tagger
from keras_seq.losses.label_losses import NO_LABEL
from keras_seq.run import Run
from keras_seq.scoring import are_entity_tags, label_scores, tag_scores
from keras_seq.settings import Settings
from keras_seq.text import InputError, words_of
from keras_seq.training.averaging import averaged_weights
from keras_seq.training.event_log import EventLog
from keras_seq.training.feed import batch_shapes
from keras_seq.training.objectives import make_objective
from keras_seq.training.rounding import rounded


class LabelValidator:
    """Loss, accuracy and F1 on a run's validation text, with the averaged weights.

    Args:
        run: A prepared run; metrics and samples are appended to its logs.
        model: Its model.
        fitted: What is compiled and trained, of the same weights.
        notice: Called with each line for the user.
        events: Where samples go.

    Attributes:
        monitor: "macro_f1" of a classifier; of a tagger "entity_f1" where all tags are those of
            entities, B-PER or I-PER and the like, or "accuracy"; unless the settings name
            another one.
        signature: "", for there is no score of text.

    Raises:
        InputError: If the settings name "entity_f1" and the tags are not those of entities.
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
        self._evaluate = _make_evaluation(run.settings, model, fitted)
        self._tags = run.settings.task == "tag"
        self._answer = (Tagger if self._tags else Classifier).of_run(run, model)
        self.signature = ""
        self.monitor = "macro_f1"
        if self._tags:
            # Both: what is scored has tags of either.
            _, lines = run.valid_lines()
            known = run.labels.names, {tag for line in lines for tag in words_of(line)}
            self.monitor = "entity_f1" if all(map(are_entity_tags, known)) else "accuracy"
        if (asked := self._training.monitor) != "auto":
            if asked == "entity_f1" and self.monitor != asked:
                raise InputError(
                    "training.monitor: received 'entity_f1', but the tags are not those of "
                    "entities such as B-PER: expected 'accuracy', 'macro_f1' or 'loss'"
                )
            self.monitor = asked

    def __call__(self, step: int, minutes: float) -> dict[str, float]:
        """Validates.

        Args:
            step: Updates done.
            minutes: Minutes trained.

        Returns:
            `loss`, `accuracy` and `macro_f1`, of entities `entity_f1`, too.
        """
        backend.sync_variables(self._fitted)
        texts, references = self._run.valid_lines()
        batches = sequential_batches(
            self._corpus, batch_tokens=self._training.batch_tokens, shapes=batch_shapes()
        )
        with averaged_weights(self._fitted):
            results = {"loss": self._evaluate(batches)}
            answers = self._answer(texts)
        results |= self._scores(references, answers)
        shown = ", ".join(
            f"{name.replace('_', ' ')} {value:.3f}" for name, value in results.items()
        )
        self._notice(f"validation at step {step:,}, {minutes:.1f} min: {shown}")
        samples = _samples(texts, references, answers, self._training.sample_count)
        lines = [
            line
            for number, text, reference, answer in samples
            for line in (
                f"  step {step:,}, line {number}",
                f"    text      {text}",
                f"    reference {reference}",
                f"    model     {answer}",
            )
        ]
        for line in lines:
            self._notice(line)
        self._run.logs.append_samples("\n".join(lines))
        self._events.write_samples(step, [sample[1:] for sample in samples])
        self._run.logs.append_metrics(
            {
                "kind": "validation",
                "step": step,
                **rounded({"minutes": minutes, **results}),
                "monitor": self.monitor,
            }
        )
        return results

    def _scores(self, references: Sequence[str], answers: Sequence[str]) -> dict[str, float]:
        if not self._tags:
            found = label_scores(references, answers)
            return {"accuracy": found.accuracy, "macro_f1": found.macro_f1}
        tagged = tag_scores([words_of(line) for line in references], [*map(words_of, answers)])
        scores = {"accuracy": tagged.words.accuracy, "macro_f1": tagged.words.macro_f1}
        if tagged.entities is not None:
            scores["entity_f1"] = tagged.entities.f1
        return scores


def _samples(
    texts: list[str], references: list[str], answers: list[str], count: int
) -> list[tuple[int, str, str, str]]:
    """The same few lines at every validation, spread over the set."""
    every = max(1, -(-len(texts) // max(count, 1)))
    return [(i + 1, texts[i], references[i], answers[i]) for i in range(0, len(texts), every)][
        :count
    ]


def _make_evaluation(
    settings: Settings, model: keras.Model, fitted: keras.Model
) -> Callable[[Iterable[dict[str, np.ndarray]]], float]:
    """A function of batches that gives the mean loss of a label, without smoothing."""
    plain = settings.training.model_copy(update={"label_smoothing": 0.0})
    objective = make_objective(settings.model_copy(update={"training": plain}))
    loss = objective.loss(model)
    tags = settings.task == "tag"

    def summed(labels: Any, source: Any, *begins: Any) -> Any:
        inputs = {"source": source, **({"begins": ops.not_equal(begins[0], 0)} if tags else {})}
        count = ops.sum(ops.cast(ops.not_equal(labels, NO_LABEL), "float32"))
        return loss(labels, fitted(inputs, training=False)), count

    ranks = [2, 2, 2] if tags else [1, 2]
    compiled = backend.compiled(summed, model.variables, ranks=ranks)

    def evaluate(batches: Iterable[dict[str, np.ndarray]]) -> float:
        total = count = 0.0
        for batch in batches:
            inputs, labels, _ = objective.fit_batch(batch, np.ones(0, np.float32))
            parts = compiled(labels, *inputs.values())
            total += float(keras.ops.convert_to_numpy(parts[0]))
            count += float(keras.ops.convert_to_numpy(parts[1]))
        return total / max(count, 1.0)

    return evaluate
