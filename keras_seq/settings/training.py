"""How a model is trained."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from keras_seq.settings.monitors import MonitorName
from keras_seq.settings.section import Section, a_choice, a_number, a_share, a_text


class TrainingSettings(Section):
    """How the model is trained and how often it is looked at."""

    batch_tokens: int = a_number(4096, 1, 10_000_000, "Token budget of a batch.")
    effective_batch_tokens: int | None = a_number(
        None, 1, 10**9, "Token budget of an update, made of several batches; none: of one."
    )
    precision: Literal["float32", "bfloat16", "float16", "auto"] = a_choice(
        "float32", "Arithmetic of the training; weights are float32. auto: the device's fastest."
    )
    learning_rate: float = Field(default=0.001, gt=0, le=100, description="Peak learning rate.")
    schedule: Literal["inverse_sqrt", "noam", "constant"] = a_choice(
        "inverse_sqrt", "Course of the learning rate."
    )
    warmup_steps: int = a_number(1000, 0, 10_000_000, "Updates until the peak rate.")
    beta_1: float = a_share(0.9, "Adam's first decay.")
    beta_2: float = a_share(0.98, "Adam's second decay.")
    label_smoothing: float = a_share(0.1, "Mass taken from the true token.")
    word_dropout: float = a_share(0.0, "Chance of a target token to be hidden from the decoder.")
    source_word_dropout: float = a_share(0.0, "Chance of a source token to be hidden.")
    subword_alpha: float = a_number(
        0.0,
        0,
        100,
        "Words are cut by chance; exponent of the chances (BPE: merges left out); 0: off.",
    )
    subword_nbest: int = a_number(
        -1, -1, 1000, "Likeliest cuts of a line that are drawn from; -1: all. Not for BPE."
    )
    scheduled_sampling: Literal["none", "constant", "linear", "exponential", "inverse_sigmoid"] = (
        a_choice("none", "How target tokens come to be replaced by what the model would say.")
    )
    scheduled_sampling_rate: float = a_number(
        0.25, 0, 1, "Share of target tokens that scheduled sampling replaces in the end."
    )
    scheduled_sampling_steps: int = a_number(
        5000, 1, 10**9, "Updates until half of that share; constant needs none."
    )
    guided_alignment: float = a_number(
        0.0, 0, 100, "Weight of the attention's loss against data.alignments; 0: off."
    )
    guided_alignment_layer: int = a_number(
        -1, -100, 99, "Decoder layer whose attention is guided; -1: the last."
    )
    kl_weight: float = a_number(
        1.0, 0, 1000, "What the divergence of the codes from their prior is multiplied by: beta."
    )
    kl_annealing: Literal["none", "linear", "cyclical"] = a_choice(
        "none", "How beta comes there from 0: once, or kl_cycles times."
    )
    kl_annealing_steps: int = a_number(5000, 1, 10**9, "Updates until beta stays what it is.")
    kl_cycles: int = a_number(4, 1, 10_000, "Rises of a cyclical beta in these updates.")
    free_bits: float = a_number(
        0.0, 0, 1000, "Divergence of each number of a code that costs nothing, in nats."
    )
    from_run: str | None = a_text("Run whose best weights the training starts from.")
    from_hub: str | None = a_text(
        "Preset of KerasHub whose encoder, with its word pieces, the training starts from."
    )
    from_run_vocabulary: Literal["keep", "new"] = a_choice(
        "keep", "Whether the vocabulary of from_run is kept, or learned anew from the text."
    )
    source_embeddings: str | None = a_text(
        "File of word vectors that source embeddings start from; a word and its numbers a line."
    )
    target_embeddings: str | None = a_text("The same for target embeddings.")
    freeze: str | list[str] | None = a_text(
        "Weights that stay as they are, by patterns of their names such as encoder_*."
    )
    clip_norm: float = a_number(1.0, 0, 1e6, "Largest norm of the gradient; 0: no limit.")
    ema: float = a_share(
        0.999, "Decay of the averaged weights; after t updates at most t / (t + 9). 0: none."
    )
    max_steps: int | None = a_number(None, 1, 10**9, "Stop after so many updates.")
    max_minutes: float | None = Field(
        default=None, gt=0, le=10**6, description="Stop after so many minutes."
    )
    max_epochs: int | None = a_number(None, 1, 10**6, "Stop after so many passes over the data.")
    validate_every: int = a_number(1000, 1, 10**9, "Updates between validations.")
    checkpoint_every: int = a_number(1000, 1, 10**9, "Updates between checkpoints.")
    monitor: MonitorName = a_choice(
        "auto", "Value that decides which checkpoint is best. auto: by task and validation text."
    )
    patience: int = a_number(
        10, 0, 10**6, "Validations without a better value of monitor until the stop; 0: off."
    )
    max_skipped: int = a_number(
        10, 1, 10**6, "Updates skipped in a row, as not finite, until the stop."
    )
    keep_checkpoints: int = a_number(3, 1, 1000, "Newest checkpoints kept, besides the best.")
    sample_count: int = a_number(3, 0, 1000, "Translations shown at each validation.")
    validation_beam_size: int = a_number(1, 1, 100, "Beam of the decoding in validation.")

    @field_validator("precision", mode="before")
    @classmethod
    def _by_its_short_name(cls, value: Any) -> Any:
        # What Keras calls its policies is as good a name.
        names = {"mixed_bfloat16": "bfloat16", "mixed_float16": "float16"}
        return names.get(value, value) if isinstance(value, str) else value

    @property
    def micro_batches(self) -> int:
        """How many batches make an update."""
        return -(-(self.effective_batch_tokens or self.batch_tokens) // self.batch_tokens)

    @model_validator(mode="after")
    def _some_cut_to_draw_from(self) -> TrainingSettings:
        if self.subword_nbest == 0:
            raise ValueError("subword_nbest: received 0, expected at least 1, or -1 for all")
        return self

    @model_validator(mode="after")
    def _one_start(self) -> TrainingSettings:
        if self.from_hub is not None:
            if self.from_run is not None:
                raise ValueError(
                    f"from_run: received {self.from_run!r} with training.from_hub "
                    f"({self.from_hub!r}): give one of the two"
                )
        if self.from_run is None:
            if self.from_run_vocabulary == "new":
                raise ValueError(
                    "from_run_vocabulary: received 'new' without training.from_run, the run whose "
                    "vocabulary is to be changed"
                )
            return self
        for key in ("source_embeddings", "target_embeddings"):
            if (name := getattr(self, key)) is not None:
                raise ValueError(
                    f"{key}: received {name!r} with training.from_run ({self.from_run!r}), whose "
                    "embeddings go with its other weights: give one of the two"
                )
        return self

    @model_validator(mode="after")
    def _update_holds_a_batch(self) -> TrainingSettings:
        effective = self.effective_batch_tokens
        if effective is not None and effective < self.batch_tokens:
            raise ValueError(
                f"effective_batch_tokens: received {effective}, expected at least "
                f"training.batch_tokens ({self.batch_tokens})"
            )
        return self
