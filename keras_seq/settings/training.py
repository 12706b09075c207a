"""Settings of training."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from keras_seq.settings.plugins import require_added
from keras_seq.settings.section import Section, a_choice, a_number, a_share, a_text, as_list


class TrainingSettings(Section):
    """Optimization, regularization, initial weights, limits and intervals of training."""

    batch_tokens: int = a_number(4096, 1, 10_000_000, "Token budget of a batch.")
    effective_batch_tokens: int | None = a_number(
        None, 1, 10**9, "Token budget of an update of several batches; none: one batch per update."
    )
    precision: Literal["float32", "bfloat16", "float16", "auto"] = a_choice(
        "float32", "Arithmetic of training; weights stay float32. auto: the fastest on the device."
    )
    learning_rate: float = Field(default=0.001, gt=0, le=100, description="Peak learning rate.")
    schedule: Literal["inverse_sqrt", "noam", "cosine", "constant"] = a_choice(
        "inverse_sqrt",
        "Learning-rate schedule; cosine ends at 0 after max_steps or max_epochs.",
    )
    cycles: int = a_number(
        1,
        1,
        100,
        "Times that the cosine schedule falls to 0. With several, the checkpoint at the end of "
        "each is kept.",
    )
    warmup_steps: int = a_number(1000, 0, 10_000_000, "Updates until the peak learning rate.")
    beta_1: float = a_share(0.9, "Adam's decay rate of the first moment.")
    beta_2: float = a_share(0.98, "Adam's decay rate of the second moment.")
    loss: str | None = a_text("Loss of a plugin; none: cross-entropy.")
    label_smoothing: float = a_share(0.1, "Probability mass taken from the true token.")
    r_drop: float = a_number(
        0.0,
        0,
        1000,
        "Weight of the divergence between two passes with different dropout, such as 5; 0: off.",
    )
    minimum_risk: float = a_number(
        0.0,
        0,
        1000,
        "Weight of the expected cost, 1 - GLEU, of sampled translations, such as 50, to train a "
        "trained model further; 0: off.",
    )
    minimum_risk_samples: int = a_number(8, 2, 64, "Translations of each source to sample for it.")
    word_dropout: float = a_share(0.0, "Probability of masking a decoder input token.")
    source_word_dropout: float = a_share(0.0, "Probability of masking a source token.")
    unseen_tokens: float = a_share(
        0.05,
        "With model.copy: probability of replacing a token of both sides by a random byte, which "
        "teaches to copy unseen text.",
    )
    carry_state: bool = a_choice(
        False,
        "Keep the state of a recurrent language model from one piece of packed text to the next.",
    )
    subword_alpha: float = a_number(
        0.0,
        0,
        100,
        "Subword sampling: exponent of probabilities (BPE: merge dropout rate); 0: off.",
    )
    subword_nbest: int = a_number(
        -1, -1, 1000, "Subword sampling: number of most likely segmentations; -1: all. Not for BPE."
    )
    scheduled_sampling: Literal["none", "constant", "linear", "exponential", "inverse_sigmoid"] = (
        a_choice("none", "Schedule by which predictions replace decoder input tokens.")
    )
    scheduled_sampling_rate: float = a_number(
        0.25, 0, 1, "Final share of decoder input tokens that scheduled sampling replaces."
    )
    scheduled_sampling_steps: int = a_number(
        5000, 1, 10**9, "Updates until half of that share; ignored by constant."
    )
    guided_alignment: float = a_number(
        0.0, 0, 100, "Weight of the guided-alignment loss, which needs data.alignments; 0: off."
    )
    guided_alignment_layer: int = a_number(
        -1, -100, 99, "Decoder layer with guided attention; -1: the last."
    )
    kl_weight: float = a_number(1.0, 0, 1000, "Weight of the KL divergence of a VAE (beta).")
    kl_annealing: Literal["none", "linear", "cyclical"] = a_choice(
        "none", "Schedule by which beta rises from 0: once (linear) or kl_cycles times (cyclical)."
    )
    kl_annealing_steps: int = a_number(5000, 1, 10**9, "Updates until beta is constant.")
    kl_cycles: int = a_number(4, 1, 10_000, "Number of rises of a cyclical beta in these updates.")
    free_bits: float = a_number(
        0.0, 0, 1000, "KL divergence of each latent dimension that is not penalized, in nats."
    )
    from_run: str | None = a_text("Run whose best weights initialize the model.")
    from_hub: str | None = a_text(
        "Preset of KerasHub whose encoder and word pieces the model starts from."
    )
    from_run_vocabulary: Literal["keep", "new"] = a_choice(
        "keep", "Keep the vocabulary of from_run, or learn a new one from the text."
    )
    teacher: str | None = a_text(
        "Run whose probabilities the training imitates, with its vocabulary."
    )
    teacher_weight: float = a_number(0.5, 0, 1, "Share of the loss that imitates the teacher.")
    source_embeddings: str | None = a_text(
        "File of word vectors that initialize the source embeddings, one word per line."
    )
    target_embeddings: str | None = a_text(
        "File of word vectors that initialize the target embeddings, one word per line."
    )
    freeze: str | list[str] | None = a_text(
        "Weights that are not trained, as a pattern of names such as encoder_*, or a list of them."
    )
    clip_norm: float = a_number(1.0, 0, 1e6, "Maximum global norm of the gradient; 0: no clipping.")
    ema: float = a_share(
        0.999, "Decay of averaged weights, at most t / (t + 9) after t updates; 0: off."
    )
    max_steps: int | None = a_number(None, 1, 10**9, "Stop after this many updates.")
    max_minutes: float | None = Field(
        default=None, gt=0, le=10**6, description="Stop after this many minutes."
    )
    max_epochs: int | None = a_number(None, 1, 10**6, "Stop after this many epochs.")
    validate_every: int = a_number(1000, 1, 10**9, "Updates between validations.")
    checkpoint_every: int = a_number(1000, 1, 10**9, "Updates between checkpoints.")
    monitor: str = a_choice(
        "auto", "Metric that selects the best checkpoint; auto: chosen by task and validation text."
    )
    callbacks: str | list[str] | None = a_text("Callback of a plugin, or a list of callbacks.")
    patience: int = a_number(
        10, 0, 10**6, "Early stopping: validations without improvement of the monitor; 0: off."
    )
    max_skipped: int = a_number(
        10, 1, 10**6, "Stop after this many consecutive updates with NaN or infinite gradients."
    )
    keep_checkpoints: int = a_number(3, 1, 1000, "Newest checkpoints to keep, besides the best.")
    sample_count: int = a_number(3, 0, 1000, "Sample translations shown at each validation.")
    validation_beam_size: int = a_number(1, 1, 100, "Beam size of validation.")

    @field_validator("precision", mode="before")
    @classmethod
    def _by_its_short_name(cls, value: Any) -> Any:
        # Also accept the names of Keras dtype policies.
        names = {"mixed_bfloat16": "bfloat16", "mixed_float16": "float16"}
        return names.get(value, value) if isinstance(value, str) else value

    @property
    def micro_batches(self) -> int:
        """The number of batches of an update."""
        return -(-(self.effective_batch_tokens or self.batch_tokens) // self.batch_tokens)

    @model_validator(mode="after")
    def _are_known(self) -> TrainingSettings:
        require_added("loss", "loss", [] if self.loss is None else [self.loss])
        require_added("callback", "callbacks", as_list(self.callbacks))
        return self

    @model_validator(mode="after")
    def _is_possible(self) -> TrainingSettings:
        if self.subword_nbest == 0:
            raise ValueError("subword_nbest: received 0, expected at least 1, or -1 for all")
        if self.cycles > 1 and self.schedule != "cosine":
            raise ValueError(
                f"cycles: received {self.cycles} with training.schedule {self.schedule!r}, "
                "expected 1: only 'cosine' has cycles"
            )
        effective = self.effective_batch_tokens
        if effective is not None and effective < self.batch_tokens:
            raise ValueError(
                f"effective_batch_tokens: received {effective}, expected at least "
                f"training.batch_tokens ({self.batch_tokens})"
            )
        if self.from_hub is not None and self.from_run is not None:
            raise ValueError(
                f"from_run: received {self.from_run!r} with training.from_hub "
                f"({self.from_hub!r}): give one of the two"
            )
        if self.from_run is None:
            if self.from_run_vocabulary == "new":
                raise ValueError(
                    "from_run_vocabulary: received 'new' without training.from_run, the run with "
                    "the initial weights"
                )
            return self
        for key in ("source_embeddings", "target_embeddings"):
            if (name := getattr(self, key)) is not None:
                raise ValueError(
                    f"{key}: received {name!r} with training.from_run ({self.from_run!r}), which "
                    "has its own embeddings: give one of the two"
                )
        return self
