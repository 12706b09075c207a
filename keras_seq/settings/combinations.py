"""Checks of settings that depend on settings of other sections."""

from __future__ import annotations

from typing import Any

from keras_seq.plugins import plugin_of
from keras_seq.settings.errors import choices
from keras_seq.settings.families import FAMILIES, families_of
from keras_seq.settings.hub_models import BackboneSeq2SeqSettings, BackboneSettings
from keras_seq.settings.sequence_models import TransformerSettings
from keras_seq.settings.tasks import TASKS, check_task_settings
from keras_seq.settings.tokenizer import SIDES, SUBWORDS

# Values of the training settings of a run with several models. Other values are only possible in a
# run with one model.
REQUIRED_OF_MEMBERS = {
    "guided_alignment": 0.0,
    "scheduled_sampling": "none",
    "from_run_vocabulary": "keep",
    "teacher": None,
}


def check_combinations(settings: Any) -> None:
    """Raises ValueError for the first invalid combination of `Settings`."""
    _check_task(settings)
    _check_pretrained_encoder(settings)
    _check_subword_sampling(settings)
    _check_features(settings)
    _check_languages(settings)
    _check_copy(settings)
    _check_hard_attention(settings)
    members = getattr(settings.model, "members", 1)
    if members != 1:
        _require(settings.training, REQUIRED_OF_MEMBERS, f"model.members {members}")
    _check_loss(settings)
    _check_guided_alignment(settings)
    _check_positions(settings)
    _check_carried_states(settings)
    _check_r_drop(settings)
    _check_teacher(settings)
    _check_minimum_risk(settings)


def allows_several_members(training: Any) -> bool:
    """Tests if a run with these training settings may have several models (`model.members`)."""
    return all(getattr(training, key) == value for key, value in REQUIRED_OF_MEMBERS.items())


def _require(training: Any, expected: dict[str, Any], reason: str) -> None:
    """Raises ValueError unless the section `training` has the values that `reason` requires."""
    for key, value in expected.items():
        if (received := getattr(training, key)) != value:
            text = {None: "none", 0.0: "0"}.get(value, repr(value))
            raise ValueError(
                f"training.{key}: received {received!r}, expected {text} with {reason}"
            )


def _check_task(settings: Any) -> None:
    families = families_of(TASKS[settings.task])
    if settings.search.rerank != "none" and settings.task != "translate":
        raise ValueError(
            f"search.rerank: received {settings.search.rerank}, expected none with task "
            f"{settings.task!r}: only translations are reranked"
        )
    if settings.model.family not in families:
        raise ValueError(
            f"model.family: received {settings.model.family!r}, expected "
            f"{choices(families)} with task {settings.task!r}"
        )
    if TASKS[settings.task].reads_sounds and plugin_of("family", settings.model.family):
        raise ValueError(
            f"model.family: received {settings.model.family!r}, expected "
            f"{choices(TASKS[settings.task].families)}: plugins cannot add models of recordings"
        )
    check_task_settings(settings.task, settings)
    if settings.data.packed:
        if settings.data.weights or settings.data.file_weights:
            raise ValueError("data.weights: expected none with data.packed, which joins lines")
        _require(settings.training, {"subword_alpha": 0.0}, "data.packed")


def _check_pretrained_encoder(settings: Any) -> None:
    model, preset = settings.model, settings.training.from_hub
    if not isinstance(model, BackboneSettings):
        if preset is not None:
            families = [name for name in FAMILIES if issubclass(FAMILIES[name], BackboneSettings)]
            raise ValueError(
                f"training.from_hub: received {preset!r}, expected none unless model.family is "
                f"{choices(families)}"
            )
        return
    family = f"model.family {model.family!r}"
    # The pretrained encoder has its own embeddings and word pieces.
    required = {"source_embeddings": None, "subword_alpha": 0.0, "from_run_vocabulary": "keep"}
    _require(settings.training, required, family)
    longest = model.backbone_positions - 2
    if settings.data.max_source_length > longest:
        raise ValueError(
            f"data.max_source_length: received {settings.data.max_source_length:,}, expected at "
            f"most {longest:,}: the encoder has {model.backbone_positions:,} positions, two of "
            "them for special tokens"
        )
    if settings.tokenizer.joint and settings.task == "translate":
        raise ValueError(
            f"tokenizer.joint: received True, expected False with {family}: the encoder has its "
            "own vocabulary"
        )


def _check_subword_sampling(settings: Any) -> None:
    alpha = settings.training.subword_alpha
    for side in SIDES if alpha else ():
        kind = settings.tokenizer.of_side(side).kind
        if kind not in (*SUBWORDS, "auto"):
            raise ValueError(
                f"training.subword_alpha: received {alpha:g}, expected 0 with a vocabulary of "
                f"kind {kind!r}: only subwords have several segmentations"
            )
        if kind == "bpe" and alpha >= 1:
            raise ValueError(
                f"training.subword_alpha: received {alpha:g}, expected below 1 with "
                "tokenizer.kind 'bpe', where it is the rate of merge dropout"
            )


def _check_carried_states(settings: Any) -> None:
    """Raises ValueError if states are carried where there are none, or no next piece."""
    if not settings.training.carry_state:
        return
    if settings.model.family != "lm-rnn":
        raise ValueError(
            f"training.carry_state: received True with model.family {settings.model.family!r}, "
            "expected 'lm-rnn', whose layers have states"
        )
    if not settings.data.packed:
        raise ValueError("training.carry_state: expected data.packed, whose pieces continue")
    required = {"effective_batch_tokens": None, "scheduled_sampling": "none"}
    _require(settings.training, required, "training.carry_state")


def _check_positions(settings: Any) -> None:
    model, data = settings.model, settings.data
    if getattr(model, "position", None) != "learned":
        return
    lengths = {}
    if settings.task != "language-model":
        lengths["data.max_source_length"] = data.max_source_length
    if not TASKS[settings.task].has_labels:
        lengths["data.max_target_length"] = data.max_target_length
        lengths["search.max_length"] = settings.search.max_length
    for name, length in lengths.items():
        # A sequence has an end token or a begin token as well.
        if length >= model.max_positions:
            raise ValueError(
                f"model.max_positions: received {model.max_positions:,}, expected more than "
                f"{name} ({length:,}) with model.position 'learned'"
            )


def _check_features(settings: Any) -> None:
    encoder = getattr(settings.model, "feature_encoder", "none")
    # Prepared directories are checked when they are opened.
    if encoder != "none" and not settings.data.has_features and settings.data.prepared is None:
        raise ValueError(
            f"model.feature_encoder: received {encoder!r}, expected 'none' without features in "
            "data.columns"
        )
    if settings.task != "translate" or not settings.data.has_features:
        return
    reason = "features in data.columns, which are tokens after the source"
    _require(settings.training, {"subword_alpha": 0.0, "from_hub": None}, reason)
    if settings.data.alignments is not None:
        raise ValueError(
            f"data.alignments: received {settings.data.alignments!r}, expected none with {reason}"
        )


def _check_languages(settings: Any) -> None:
    data = settings.data
    if not data.has_languages:
        # Prepared directories are checked when they are opened.
        if data.temperature != 1 and data.prepared is None:
            raise ValueError(
                f"data.temperature: received {data.temperature:g}, expected 1 without "
                "target_language in data.columns"
            )
        return
    reason = "target_language in data.columns, which is a token of the source"
    if settings.task != "translate":
        raise ValueError(
            f"data.columns: received target_language with task {settings.task!r}, expected task "
            "'translate'"
        )
    _require(settings.training, {"from_hub": None}, reason)
    if data.alignments is not None:
        raise ValueError(
            f"data.alignments: received {data.alignments!r}, expected none with {reason}"
        )
    separator = settings.tokenizer.of_side("source").separator
    if separator != " ":
        raise ValueError(f"tokenizer.separator: received {separator!r}, expected ' ' with {reason}")


def _check_hard_attention(settings: Any) -> None:
    if getattr(settings.model, "attention", "") != "hard":
        return
    reason = "model.attention 'hard'"
    if settings.model.copies:
        raise ValueError(f"model.copy: received True, expected False with {reason}")
    # Its likelihood reads the true target from the input, and it has no attention to guide.
    values = {"scheduled_sampling": "none", "word_dropout": 0.0, "guided_alignment": 0.0}
    _require(settings.training, values, reason)


def _check_loss(settings: Any) -> None:
    """Raises ValueError for a loss of a plugin with a model that has a loss of its own."""
    if settings.training.loss is None:
        return
    values = {"attention 'hard'": ("attention", "hard"), "crf": ("crf", True)}
    for name, (key, value) in values.items():
        if getattr(settings.model, key, None) == value:
            reason = f"model.{name}, which has a loss of its own"
            _require(settings.training, {"loss": None}, reason)


def _check_copy(settings: Any) -> None:
    # With features, the vocabularies of both sides are equal but for the features.
    one_vocabulary = settings.tokenizer.joint or settings.data.has_features
    if settings.model.copies and not one_vocabulary:
        raise ValueError(
            "tokenizer.joint: received False, expected True with model.copy, which needs one "
            "vocabulary for both sides"
        )


def _check_guided_alignment(settings: Any) -> None:
    weight, layer = settings.training.guided_alignment, settings.training.guided_alignment_layer
    if not weight:
        return
    # Prepared directories are checked when they are opened.
    if settings.data.alignments is None and settings.data.prepared is None:
        raise ValueError(
            f"training.guided_alignment: received {weight:g} without data.alignments, the file of "
            "alignments"
        )
    # Only the first layer of a recurrent decoder attends to the source.
    layers = 1
    if isinstance(settings.model, TransformerSettings | BackboneSeq2SeqSettings):
        layers = settings.model.num_decoder_layers
    if not -layers <= layer < layers:
        raise ValueError(
            f"training.guided_alignment_layer: received {layer}, expected from {-layers} to "
            f"{layers - 1}, because {layers} decoder layers attend to the source"
        )


def _check_r_drop(settings: Any) -> None:
    """Raises ValueError if two passes do not differ, or the loss cannot compare them."""
    if not settings.training.r_drop:
        return
    rates = [value for key, value in settings.model if key.endswith("dropout")]
    if rates and not any(rates):
        raise ValueError(
            f"training.r_drop: received {settings.training.r_drop:g}, expected 0 without dropout: "
            "set model.dropout"
        )
    if getattr(settings.model, "attention", "") == "hard":
        raise ValueError(
            f"training.r_drop: received {settings.training.r_drop:g}, expected 0 with "
            "model.attention 'hard'"
        )
    required = {"guided_alignment": 0.0, "scheduled_sampling": "none", "carry_state": False}
    _require(settings.training, required, "training.r_drop")


def _check_teacher(settings: Any) -> None:
    """Raises ValueError if the loss cannot compare the outputs with those of a teacher."""
    if settings.training.teacher is None:
        return
    if isinstance(settings.model, BackboneSettings):
        raise ValueError(
            f"training.teacher: received {settings.training.teacher!r}, expected none with a "
            "pretrained encoder, which has a vocabulary of its own"
        )
    required = {
        "r_drop": 0.0,
        "guided_alignment": 0.0,
        "scheduled_sampling": "none",
        "carry_state": False,
        "from_run_vocabulary": "keep",
    }
    _require(settings.training, required, "training.teacher")


def _check_minimum_risk(settings: Any) -> None:
    """Raises ValueError if translations cannot be sampled, or the loss has another form."""
    weight = settings.training.minimum_risk
    if not weight:
        return
    received = f"training.minimum_risk: received {weight:g}, expected 0 with"
    if settings.task != "translate":
        raise ValueError(f"{received} task {settings.task!r}: it samples translations")
    if getattr(settings.model, "attention", "") == "hard":
        raise ValueError(f"{received} model.attention 'hard'")
    required = {
        "r_drop": 0.0,
        "teacher": None,
        "guided_alignment": 0.0,
        "scheduled_sampling": "none",
    }
    _require(settings.training, required, "training.minimum_risk")
