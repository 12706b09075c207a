"""Everything a run can be told: one bounded, typed table.

Settings come in layers, each over the one before: the defaults below, a
preset, a TOML file, flags and `--set key=value`. What a run used is kept whole
in its `settings.toml`. This module knows neither Keras nor files of a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import tomli_w
from pydantic import (
    BeforeValidator,
    Field,
    InstanceOf,
    SerializeAsAny,
    ValidationError,
    model_validator,
)

from keras_seq.settings.data import DataSettings
from keras_seq.settings.errors import SettingsError, choices, expectation, show, suggest
from keras_seq.settings.hub_models import (
    BackboneClassifierSettings,
    BackboneSeq2SeqSettings,
    BackboneSettings,
)
from keras_seq.settings.label_models import (
    BagClassifierSettings,
    RecurrentClassifierSettings,
    RecurrentTaggerSettings,
    TransformerClassifierSettings,
    TransformerTaggerSettings,
)
from keras_seq.settings.latent_models import SequenceVAESettings
from keras_seq.settings.score import ScoreSettings
from keras_seq.settings.search import NOT_OF_METHOD, SearchSettings
from keras_seq.settings.section import ModelSection, Section
from keras_seq.settings.sequence_models import (
    RecurrentLanguageModelSettings,
    RecurrentSettings,
    TransformerLanguageModelSettings,
    TransformerSettings,
)
from keras_seq.settings.tasks import TASKS, refuse_of_other_tasks
from keras_seq.settings.tokenizer import SIDES, SUBWORDS, TokenizerSettings
from keras_seq.settings.toml import parse_toml
from keras_seq.settings.training import TrainingSettings

FAMILIES: dict[str, type[ModelSection]] = {
    section.model_fields["family"].default: section
    for section in (
        TransformerSettings,
        RecurrentSettings,
        TransformerLanguageModelSettings,
        RecurrentLanguageModelSettings,
        BagClassifierSettings,
        RecurrentClassifierSettings,
        TransformerClassifierSettings,
        RecurrentTaggerSettings,
        TransformerTaggerSettings,
        SequenceVAESettings,
        BackboneClassifierSettings,
        BackboneSeq2SeqSettings,
    )
}


def _of_its_family(value: Any) -> Any:
    """Reads the section `model` with the class of its family."""
    if not isinstance(value, dict):
        return value
    family = value.get("family")
    if not isinstance(family, str) or family not in FAMILIES:
        raise ValueError(f"family: received {show(family)}, expected {choices(FAMILIES)}")
    return FAMILIES[family].model_validate(value)


# Tables within a section.
_NESTED = [["tokenizer", side] for side in SIDES]


class Settings(Section):
    """All settings of a run.

    Frozen; change one by `load_settings` or `Settings.from_dict`, which check
    the whole again.

    Example:

    >>> from keras_seq.settings import load_settings
    >>> settings = load_settings(preset="transformer-tiny", overrides=["training.max_steps=100"])
    >>> settings.model.units, settings.training.max_steps
    (128, 100)
    """

    task: str = Field(
        default="translate",
        description="What is learned: from pairs of lines, from lines, or from labelled lines.",
    )
    seed: int = Field(default=1, ge=0, le=2**31 - 1, description="Seed of everything random.")
    data: DataSettings = DataSettings()
    tokenizer: TokenizerSettings = TokenizerSettings()
    model: Annotated[SerializeAsAny[InstanceOf[ModelSection]], BeforeValidator(_of_its_family)] = (
        TransformerSettings()
    )
    training: TrainingSettings = TrainingSettings()
    search: SearchSettings = SearchSettings()
    score: ScoreSettings = ScoreSettings()

    @model_validator(mode="before")
    @classmethod
    def _default_family(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        model, task = values.get("model", {}), values.get("task", "translate")
        if not isinstance(task, str) or task not in TASKS:
            raise ValueError(f"task: received {show(task)}, expected {choices(TASKS)}")
        if isinstance(model, dict) and "family" not in model:
            return {**values, "model": {"family": TASKS[task].families[0], **model}}
        return values

    @model_validator(mode="after")
    def _model_does_the_task(self) -> Settings:
        families = TASKS[self.task].families
        if self.model.family not in families:
            raise ValueError(
                f"model.family: received {self.model.family!r}, expected "
                f"{choices(families)} with task {self.task!r}"
            )
        refuse_of_other_tasks(self.task, self)
        if self.data.packed and (self.data.weights or self.data.file_weights):
            raise ValueError("data.weights: pieces of several lines have no weight of their own")
        if self.data.packed and self.training.subword_alpha:
            raise ValueError(
                f"training.subword_alpha: received {self.training.subword_alpha:g}, expected 0 "
                "with data.packed: pieces of a text are not cut into other subwords"
            )
        return self

    @model_validator(mode="after")
    def _pretrained_encoder_reads_the_source(self) -> Settings:
        model, hub = self.model, self.training.from_hub
        if not isinstance(model, BackboneSettings):
            if hub is not None:
                own = [name for name in FAMILIES if issubclass(FAMILIES[name], BackboneSettings)]
                raise ValueError(
                    f"training.from_hub: received {hub!r}, which is for model.family {choices(own)}"
                )
            return self
        for key, value in (
            ("source_embeddings", None),
            ("subword_alpha", 0.0),
            ("from_run_vocabulary", "keep"),
        ):
            # The encoder has vectors and pieces of its own.
            if (received := getattr(self.training, key)) != value:
                raise ValueError(
                    f"training.{key}: received {received!r}, which model.family "
                    f"{model.family!r} excludes"
                )
        longest = model.backbone_positions - 2
        if self.data.max_source_length > longest:
            raise ValueError(
                f"data.max_source_length: received {self.data.max_source_length:,}, expected at "
                f"most {longest:,}: the encoder has {model.backbone_positions:,} positions, two "
                "of them for its own tokens"
            )
        if self.tokenizer.joint and self.task == "translate":
            raise ValueError(
                "tokenizer.joint: received True, expected False with model.family "
                f"{model.family!r}: the encoder has a vocabulary of its own"
            )
        return self

    @model_validator(mode="after")
    def _has_other_ways_to_be_cut(self) -> Settings:
        alpha = self.training.subword_alpha
        if not alpha:
            return self
        for side in SIDES:
            kind = self.tokenizer.of_side(side).kind
            if kind not in (*SUBWORDS, "auto"):
                raise ValueError(
                    f"training.subword_alpha: received {alpha:g}, expected 0 with a vocabulary of "
                    f"kind {kind!r}: only subwords can be cut in several ways"
                )
            if kind == "bpe" and alpha >= 1:
                raise ValueError(
                    f"training.subword_alpha: received {alpha:g}, expected below 1 with "
                    "tokenizer.kind 'bpe': the share of merges left out"
                )
        return self

    @model_validator(mode="after")
    def _members_are_trained_plainly(self) -> Settings:
        members = getattr(self.model, "members", 1)
        if members == 1:
            return self
        for key, plain in (
            ("guided_alignment", 0.0),
            ("scheduled_sampling", "none"),
            ("source_embeddings", None),
            ("target_embeddings", None),
            ("from_run_vocabulary", "keep"),
        ):
            if (received := getattr(self.training, key)) != plain:
                raise ValueError(
                    f"training.{key}: received {received!r}, which model.members {members} "
                    "excludes: expected model.members 1"
                )
        return self

    @model_validator(mode="after")
    def _some_attention_to_guide(self) -> Settings:
        if not self.training.guided_alignment:
            return self
        # What was prepared elsewhere is looked at where it is opened.
        if self.data.alignments is None and self.data.prepared is None:
            raise ValueError(
                f"training.guided_alignment: received {self.training.guided_alignment:g} without "
                "data.alignments, which names the file of the alignments to guide by"
            )
        # In the recurrent model the first layer looks at the source, the others do not.
        model, layer = self.model, self.training.guided_alignment_layer
        layers = 1
        if isinstance(model, TransformerSettings | BackboneSeq2SeqSettings):
            layers = model.num_decoder_layers
        if not -layers <= layer < layers:
            raise ValueError(
                f"training.guided_alignment_layer: received {layer}, expected from {-layers} to "
                f"{layers - 1}: so many layers of the decoder look at the source"
            )
        return self

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, where: str = "") -> Settings:
        """Checks nested values; the error is one line, prefixed by `where`."""
        refuse_unknown(values, where)
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise SettingsError(where + _explain(error, _family(values))) from None

    @classmethod
    def from_toml(cls, text: str, *, where: str = "") -> Settings:
        """Reads what `to_toml` wrote."""
        return cls.from_dict(parse_toml(text, where), where=where)

    def with_search(self, search: Mapping[str, Any]) -> Settings:
        """These settings with some of the search in place of what they say of it.

        With another method, what they say of the one that they have is left out.

        Args:
            search: Values by name, as `beam_size`; see `SearchSettings`.

        Raises:
            SettingsError: An unknown name, a value out of bounds, or no possible combination.
        """
        if not search:
            return self
        base = self.to_dict()
        method = search.get("method", self.search.method)
        if method != self.search.method:
            for name in NOT_OF_METHOD.get(method, ()):
                base["search"].pop(name)
        return self.from_dict({**base, "search": {**base["search"], **search}})

    def to_dict(self) -> dict[str, Any]:
        """All values, nested, without those that are None."""
        return self.model_dump(exclude_none=True)

    def to_toml(self) -> str:
        """All values as TOML text; what is None is left out."""
        return tomli_w.dumps(self.to_dict())


def setting_keys() -> list[str]:
    """All dotted keys, in the order of the sections."""
    return list(dict.fromkeys(key for key, _ in walk_fields()))


def walk_fields() -> Iterator[tuple[str, Any]]:
    for name, field in Settings.model_fields.items():
        if name == "model":
            for family in FAMILIES.values():
                yield from ((f"model.{key}", value) for key, value in family.model_fields.items())
        elif isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield from _walk_section(name, field.annotation)
        else:
            yield name, field


def _walk_section(prefix: str, section: type[Section]) -> Iterator[tuple[str, Any]]:
    nested = []
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            nested.append((f"{prefix}.{name}", field.annotation))
        else:
            yield f"{prefix}.{name}", field
    for name, inner in nested:
        yield from _walk_section(name, inner)


def refuse_unknown(values: Mapping[str, Any], where: str) -> None:
    known = setting_keys()
    _refuse_unknown(values, "", known, where)


def _refuse_unknown(
    values: Mapping[str, Any], prefix: str, known: Sequence[str], where: str
) -> None:
    for name, value in values.items():
        dotted = f"{prefix}{name}"
        if dotted in known:
            continue
        if not any(key.startswith(f"{dotted}.") for key in known):
            raise SettingsError(f"{where}unknown setting {show(dotted)}{suggest(dotted, known)}")
        if not isinstance(value, Mapping):
            raise SettingsError(f"{where}{dotted}: received {show(value)}, expected a table")
        _refuse_unknown(value, f"{dotted}.", known, where)


def _explain(error: ValidationError, family: str) -> str:
    """One line about the first error.

    Args:
        error: From pydantic.
        family: Of the model, "" if there is none of that name.
    """
    first = error.errors(include_url=False)[0]
    location = [str(part) for part in first["loc"]]
    # Anything after section and name is a choice among the types of a setting.
    depth = 3 if location[:2] in _NESTED else 2
    key = ".".join(location[:depth])
    if first["type"] == "extra_forbidden":
        return f"{key}: not a setting of model.family {family!r}"
    if first["type"] == "value_error":
        return f"{key}.{first['ctx']['error']}".removeprefix(".")
    fields = {
        f"model.{name}": field
        for name, field in (FAMILIES[family].model_fields if family else {}).items()
    }
    field = fields.get(key) or dict(walk_fields()).get(key)
    expected = expectation(field) if field is not None else first["msg"]
    return f"{key}: received {show(first['input'])}, expected {expected}"


def _family(values: Mapping[str, Any]) -> str:
    """The family of the model that values describe, "" if there is none of that name."""
    model = values.get("model")
    family = model.get("family") if isinstance(model, Mapping) else None
    if family is None and (task := values.get("task", "translate")) in TASKS:
        family = TASKS[task].families[0]
    return family if isinstance(family, str) and family in FAMILIES else ""
