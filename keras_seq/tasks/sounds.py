"""Parts of the tasks whose sources are recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keras_seq.run import Run
from keras_seq.settings import Settings
from keras_seq.settings.search import SearchSettings
from keras_seq.tasks.task import Task, rows_of_ids
from keras_seq.text import PAIR, InputError


def refused_settings(*searched: str) -> dict[str, str]:
    """Returns the settings that recordings do not allow, all of the search but those `searched`."""
    keys = (
        "tokenizer.joint",
        "data.max_source_length",
        "training.word_dropout",
        "training.source_word_dropout",
        "training.subword_alpha",
        "training.scheduled_sampling",
        "training.guided_alignment",
        "training.r_drop",
        "training.source_embeddings",
        "training.target_embeddings",
        "training.from_run_vocabulary",
        "training.validation_beam_size",
        "data.alignments",
        *(f"search.{key}" for key in SearchSettings.model_fields if key not in searched),
    )
    return dict.fromkeys(keys, "the source is sound")


# The most recordings that an ONNX export answers for its proof.
_PROVED = 100


class SoundTask(Task):
    """Base class of tasks whose sources are recordings."""

    data = ("columns", "concatenation", "pairs", "valid_pairs", "sample_rate", "max_seconds")
    reads_sounds = True
    roles = PAIR

    def complete(self, settings: Settings) -> Settings:
        """Sets the sampling rate to that of the first recording."""
        from keras_seq.preparation.sound_encoding import survey_sounds

        if settings.data.sample_rate is not None:
            return settings
        update = {"sample_rate": survey_sounds(settings.data).rate}
        return settings.model_copy(update={"data": settings.data.model_copy(update=update)})

    def max_source_length(self, settings: Settings) -> int:
        return round(sample_rate(settings) * settings.data.max_seconds)

    def export(self, run: Run, base: Any, settings: Settings, **options: Any) -> Path:
        """Exports a run; see `export_saved_model`. Options: `which`, `verify` and `notice`."""
        raise NotImplementedError

    def describe_targets(self, run: Run, targets: Any) -> list[str]:
        """Returns a line for each row of target ids."""
        return [f"text             {text}" for text in run.target_tokenizer.decode(targets)]

    def preview(self, run: Run, batch: Any, rows: int) -> list[str]:
        targets = rows_of_ids(batch["target_output"][:rows])
        count, samples = batch["source"].shape
        seconds = samples / sample_rate(run.settings)
        head = f"first batch        {count} recordings, {seconds:.2f} seconds"
        return [head, *(f"  {line}" for line in self.describe_targets(run, targets))]


class SoundExporter:
    """The parts of an exporter that an ONNX export uses; see `Exporter`."""

    def __init__(self, run: Run, settings: Settings) -> None:
        self._run, self._settings = run, settings

    def inputs(self) -> list[Any]:
        """Returns the first validation recordings, as many as a proof needs."""
        from keras_seq.serving.sound_publishing import validation_sounds

        return validation_sounds(self._run, _PROVED) if self._run.has_valid_lines else []

    def longest_input(self, max_input: float | None) -> int:
        data = self._settings.data
        if max_input is None:
            max_input = data.max_seconds
        if not 0 < max_input <= data.max_seconds:
            raise InputError(
                f"max_input: received {max_input:g}, expected at most {data.max_seconds:g} "
                "seconds, the maximum of the run"
            )
        return max(1, round(max_input * sample_rate(self._settings)))

    def length(self, recording: Any) -> int:
        return len(recording)


def sample_rate(settings: Settings) -> int:
    """Returns the sampling rate of a prepared run."""
    rate = settings.data.sample_rate
    if rate is None:
        raise InputError("data.sample_rate: received none, expected the rate of the recordings")
    return rate
