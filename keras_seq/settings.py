"""Everything a run can be told: one bounded, typed table.

Settings come in layers, each over the one before: the defaults below, a
preset, a TOML file, flags and `--set key=value`. What a run used is kept whole
in its `settings.toml`. This module knows neither Keras nor files of a run.
"""

from __future__ import annotations

import difflib
import tomllib
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from keras_seq.presets import PRESETS

# A complete settings file is 3 kB. The two limits keep a hostile one from
# costing seconds: tomllib's work grows with the square of the dots in a key.
MAX_FILE_BYTES = 256 * 1024
MAX_LINE_DOTS = 64


class SettingsError(ValueError):
    """A setting that does not exist or is out of bounds; one line, for the user."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def _number(default: Any, low: float, high: float, description: str) -> Any:
    return Field(default, ge=low, le=high, description=description)


def _text(description: str) -> Any:
    return Field(None, min_length=1, max_length=4096, description=description)


class DataSettings(_Section):
    """Where the sentence pairs are and which are kept."""

    source: str | None = _text("File of source sentences, one a line; plain or .gz.")
    target: str | None = _text("File of target sentences, line by line with `source`.")
    pairs: str | None = _text("File of source<TAB>target lines, in place of the two above.")
    valid_source: str | None = _text("Source sentences to validate on.")
    valid_target: str | None = _text("Target sentences to validate on.")
    valid_pairs: str | None = _text("File of source<TAB>target lines to validate on.")
    max_source_length: int = _number(200, 1, 100_000, "Longest source kept, in tokens.")
    max_target_length: int = _number(200, 1, 100_000, "Longest target kept, in tokens.")
    bucket_width: int = _number(1, 1, 10_000, "Lengths this close share a batch.")


class TokenizerSettings(_Section):
    """The subword vocabulary."""

    kind: Literal["unigram", "bpe"] = Field("unigram", description="Kind of subword model.")
    size: int = _number(8000, 261, 1_000_000, "Entries of the vocabulary.")
    joint: bool = Field(True, description="One vocabulary for both languages.")


class TransformerSettings(_Section):
    """The Transformer's shape."""

    family: Literal["transformer"] = Field("transformer", description="Family of the model.")
    num_encoder_layers: int = _number(3, 1, 100, "Encoder blocks.")
    num_decoder_layers: int = _number(3, 1, 100, "Decoder blocks.")
    units: int = _number(256, 1, 16_384, "Width of the model.")
    feedforward_units: int = _number(1024, 1, 65_536, "Inner width of the feed-forward parts.")
    num_heads: int = _number(4, 1, 256, "Attention heads; divides `units`.")
    dropout: float = Field(0.1, ge=0, lt=1, description="Dropout after each part.")
    attention_dropout: float = Field(0.1, ge=0, lt=1, description="Dropout of attention weights.")
    activation_dropout: float = Field(
        0.1, ge=0, lt=1, description="Dropout inside the feed-forward parts."
    )
    activation: Literal["relu", "gelu"] = Field("relu", description="Feed-forward activation.")
    norm: Literal["pre", "post"] = Field("pre", description="Where each block normalizes.")

    @model_validator(mode="after")
    def _heads_divide_units(self) -> TransformerSettings:
        if self.units % self.num_heads:
            raise ValueError(
                f"num_heads: received {self.num_heads}, expected a divisor of "
                f"model.units ({self.units})"
            )
        return self


class RecurrentSettings(_Section):
    """The recurrent model's shape."""

    family: Literal["rnn"] = Field("rnn", description="Family of the model.")
    cell: Literal["gru", "lstm"] = Field("gru", description="Recurrent cell.")
    num_encoder_layers: int = _number(1, 1, 100, "Encoder layers; the first reads both ways.")
    num_decoder_layers: int = _number(1, 1, 100, "Decoder layers.")
    embedding_units: int = _number(256, 1, 16_384, "Width of the embeddings.")
    encoder_units: int = _number(256, 1, 16_384, "Width of the encoder, in each direction.")
    decoder_units: int = _number(512, 1, 16_384, "Width of the decoder.")
    attention: Literal["bahdanau", "luong"] = Field("bahdanau", description="Attention.")
    attention_units: int = _number(256, 1, 16_384, "Width of the attention's comparison.")
    input_feeding: bool = Field(True, description="Feed the attended vector to the next step.")
    context: Literal["every_step", "init"] = Field(
        "every_step", description="Whether the decoder sees the source at each step."
    )
    bridge: Literal["copy", "dense", "zero"] = Field(
        "dense", description="How the decoder's first state comes from the encoder's last."
    )
    dropout: float = Field(0.2, ge=0, lt=1, description="Dropout between layers.")


class TrainingSettings(_Section):
    """How the model is trained and how often it is looked at."""

    batch_tokens: int = _number(4096, 1, 10_000_000, "Token budget of a batch.")
    learning_rate: float = Field(0.001, gt=0, le=100, description="Peak learning rate.")
    schedule: Literal["inverse_sqrt", "noam", "constant"] = Field(
        "inverse_sqrt", description="Course of the learning rate."
    )
    warmup_steps: int = _number(1000, 0, 10_000_000, "Updates until the peak rate.")
    beta_1: float = Field(0.9, ge=0, lt=1, description="Adam's first decay.")
    beta_2: float = Field(0.98, ge=0, lt=1, description="Adam's second decay.")
    label_smoothing: float = Field(0.1, ge=0, lt=1, description="Mass taken from the true token.")
    clip_norm: float = _number(1.0, 0, 1e6, "Largest norm of the gradient; 0: no limit.")
    ema: float = Field(0.999, ge=0, lt=1, description="Decay of the averaged weights; 0: none.")
    max_steps: int | None = _number(None, 1, 10**9, "Stop after so many updates.")
    max_minutes: float | None = Field(
        None, gt=0, le=10**6, description="Stop after so many minutes."
    )
    max_epochs: int | None = _number(None, 1, 10**6, "Stop after so many passes over the data.")
    validate_every: int = _number(1000, 1, 10**9, "Updates between validations.")
    checkpoint_every: int = _number(1000, 1, 10**9, "Updates between checkpoints.")
    patience: int = _number(10, 0, 10**6, "Validations without better BLEU until the stop; 0: off.")
    keep_checkpoints: int = _number(3, 1, 1000, "Newest checkpoints kept, besides the best.")
    sample_count: int = _number(3, 0, 1000, "Translations shown at each validation.")
    validation_beam_size: int = _number(1, 1, 100, "Beam of the decoding in validation.")


class SearchSettings(_Section):
    """How translations are looked for."""

    beam_size: int = _number(5, 1, 1000, "Hypotheses kept at each step.")
    n_best: int = _number(1, 1, 1000, "Translations returned for a line; at most `beam_size`.")
    length_normalization: Literal["average", "gnmt", "none"] = Field(
        "average", description="How scores of different lengths are compared."
    )
    alpha: float = _number(1.0, 0, 10, "Exponent of the length normalization.")
    max_length: int = _number(256, 1, 100_000, "Longest translation, in tokens.")
    max_length_ratio: float = _number(2.0, 0, 1000, "Longest translation over source length.")
    max_length_extra: int = _number(10, 1, 100_000, "Tokens added to the ratio's limit.")
    batch_size: int = _number(32, 1, 100_000, "Sentences decoded at a time.")

    @model_validator(mode="after")
    def _n_best_fits_beam(self) -> SearchSettings:
        if self.n_best > self.beam_size:
            raise ValueError(
                f"n_best: received {self.n_best}, expected at most "
                f"search.beam_size ({self.beam_size})"
            )
        return self


ModelSettings = Annotated[TransformerSettings | RecurrentSettings, Field(discriminator="family")]
_FAMILIES: dict[str, type[_Section]] = {
    "transformer": TransformerSettings,
    "rnn": RecurrentSettings,
}


class Settings(_Section):
    """All settings of a run.

    Frozen; change one by `load_settings` or `Settings.from_dict`, which check
    the whole again.

    Example:

    >>> from keras_seq.settings import load_settings
    >>> settings = load_settings(preset="transformer-tiny", overrides=["training.max_steps=100"])
    >>> settings.model.units, settings.training.max_steps
    (128, 100)
    """

    seed: int = _number(1, 0, 2**31 - 1, "Seed of everything random.")
    data: DataSettings = Field(default_factory=DataSettings)
    tokenizer: TokenizerSettings = Field(default_factory=TokenizerSettings)
    model: ModelSettings = Field(default_factory=TransformerSettings)
    training: TrainingSettings = Field(default_factory=TrainingSettings)
    search: SearchSettings = Field(default_factory=SearchSettings)

    @model_validator(mode="before")
    @classmethod
    def _default_family(cls, values: Any) -> Any:
        model = values.get("model") if isinstance(values, dict) else None
        if isinstance(model, dict) and "family" not in model:
            return {**values, "model": {"family": "transformer", **model}}
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, where: str = "") -> Settings:
        """Checks nested values; the error is one line, prefixed by `where`."""
        _refuse_unknown(values, where)
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise SettingsError(where + _explain(error)) from None

    @classmethod
    def from_toml(cls, text: str, *, where: str = "") -> Settings:
        """Reads what `to_toml` wrote."""
        return cls.from_dict(_parse_toml(text, where), where=where)

    def to_dict(self) -> dict[str, Any]:
        """All values, nested, without those that are None."""
        return self.model_dump(exclude_none=True)

    def to_toml(self) -> str:
        """All values as TOML text; what is None is left out."""
        return tomli_w.dumps(self.to_dict())


def load_settings(
    *,
    preset: str | None = None,
    file: str | Path | None = None,
    overrides: Mapping[str, Any] | Iterable[str] | None = None,
    base: Mapping[str, Any] | None = None,
) -> Settings:
    """Settings in layers: defaults < `base` < preset < TOML file < overrides.

    A layer that changes `model.family` drops what lower layers say of the model.

    Args:
        preset: Name of a preset (`keras_seq.presets.PRESETS`), or None.
        file: Path of a TOML file with any part of the settings, or None.
        overrides: `{"training.max_steps": 100}` or `["training.max_steps=100"]`.
            Text is read as a TOML value where the setting is not text itself,
            and `none` unsets.
        base: Nested values below the preset.

    Returns:
        The checked `Settings`.

    Raises:
        SettingsError: An unknown key or preset (with the nearest one known), a
            value out of bounds, a file that cannot be read.
    """
    merged: dict[str, Any] = {}
    if base:
        _refuse_unknown(base, "")
        _merge(merged, base)
    if preset is not None:
        _merge(merged, _preset_values(preset))
    where = ""
    if file is not None:
        values = read_settings_file(file)
        # Checked over what lies below, so that an error names the file.
        _merge(merged, values)
        Settings.from_dict(merged, where=f"{file}: ")
    if overrides:
        for key, value in _override_items(overrides):
            _merge(merged, {key: value} if "." not in key else _nest(key, value))
    return Settings.from_dict(merged, where=where)


def read_settings_file(file: str | Path) -> dict[str, Any]:
    """The nested values of a TOML file, its keys checked; SettingsError names it."""
    where = f"{file}: "
    try:
        with open(file, "rb") as stream:
            content = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"{where}{(error.strerror or str(error)).lower()}") from None
    if len(content) > MAX_FILE_BYTES:
        raise SettingsError(f"{where}larger than {MAX_FILE_BYTES} bytes, not a settings file")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise SettingsError(f"{where}not UTF-8 text") from None
    values = _parse_toml(text, where)
    _refuse_unknown(values, where)
    return values


def setting_keys() -> list[str]:
    """All dotted keys, in the order of the sections."""
    return list(dict.fromkeys(key for key, _ in _walk_fields()))


def suggest(received: str, known: Iterable[str]) -> str:
    """` - did you mean X?` for the nearest known name, or nothing."""
    known = list(known)
    last_names = {key.rsplit(".", 1)[-1]: key for key in reversed(known)}
    last = received.rsplit(".", 1)[-1]
    if last in last_names:
        return f" - did you mean {last_names[last]}?"
    near = difflib.get_close_matches(received, known, n=1, cutoff=0.6)
    if not near:
        near = [
            last_names[name]
            for name in difflib.get_close_matches(last, list(last_names), n=1, cutoff=0.7)
        ]
    return f" - did you mean {near[0]}?" if near else ""


def _preset_values(name: str) -> Mapping[str, Any]:
    if name not in PRESETS:
        raise SettingsError(
            f"unknown preset {_show(name)}{suggest(name, PRESETS)} (presets: {', '.join(PRESETS)})"
        )
    return PRESETS[name]


def _parse_toml(text: str, where: str) -> dict[str, Any]:
    if len(text) > MAX_FILE_BYTES:
        raise SettingsError(f"{where}larger than {MAX_FILE_BYTES} bytes, not a settings file")
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > MAX_LINE_DOTS:
            raise SettingsError(f"{where}line {number}: too many dots for a setting")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise SettingsError(f"{where}nested too deeply, settings have two levels") from None
    except ValueError as error:
        raise SettingsError(f"{where}not valid TOML: {error}") from None


def _walk_fields() -> Iterator[tuple[str, Any]]:
    for name, field in Settings.model_fields.items():
        if name == "model":
            for family in _FAMILIES.values():
                yield from ((f"model.{key}", value) for key, value in family.model_fields.items())
        elif isinstance(field.annotation, type) and issubclass(field.annotation, _Section):
            yield from ((f"{name}.{k}", v) for k, v in field.annotation.model_fields.items())
        else:
            yield name, field


def _refuse_unknown(values: Mapping[str, Any], where: str) -> None:
    known = setting_keys()
    sections = {key.split(".")[0] for key in known if "." in key}
    for name, value in values.items():
        if name not in sections:
            if name not in known:
                raise SettingsError(f"{where}unknown setting {_show(name)}{suggest(name, known)}")
            continue
        if not isinstance(value, Mapping):
            raise SettingsError(f"{where}{name}: received {_show(value)}, expected a table")
        for key in value:
            dotted = f"{name}.{key}"
            if dotted not in known:
                raise SettingsError(
                    f"{where}unknown setting {_show(dotted)}{suggest(dotted, known)}"
                )


def _override_items(
    overrides: Mapping[str, Any] | Iterable[str],
) -> Iterator[tuple[str, Any]]:
    if isinstance(overrides, Mapping):
        pairs = list(overrides.items())
    else:
        pairs = []
        for item in overrides:
            key, equals, value = item.partition("=")
            if not equals:
                raise SettingsError(f"received {_show(item)}, expected key=value")
            pairs.append((key.strip(), value))
    fields = dict(_walk_fields())
    for key, value in pairs:
        if key not in fields:
            raise SettingsError(f"unknown setting {_show(key)}{suggest(key, list(fields))}")
        yield key, _read_value(value, fields[key]) if isinstance(value, str) else value


def _read_value(text: str, field: Any) -> Any:
    if str in _types(field.annotation):
        return None if text == "none" else text
    stripped = text.strip()
    if stripped.lower() == "none":
        return None
    if "\n" in stripped or stripped.count(".") > MAX_LINE_DOTS:
        return text
    try:
        return tomllib.loads(f"value = {stripped}")["value"]
    except (ValueError, RecursionError):
        return stripped


def _nest(key: str, value: Any) -> dict[str, Any]:
    section, name = key.split(".", 1)
    return {section: {name: value}}


def _merge(below: dict[str, Any], above: Mapping[str, Any]) -> None:
    """Lays `above` over `below`, in place; two levels, as settings have."""
    for name, value in above.items():
        if not isinstance(value, Mapping):
            below[name] = value
            continue
        section = dict(below.get(name, {}))
        if name == "model" and value.get("family", _family(section)) != _family(section):
            section = {}
        section.update(value)
        below[name] = section


def _family(section: Mapping[str, Any]) -> Any:
    return section.get("family", "transformer")


def _explain(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    location = [str(part) for part in first["loc"]]
    if len(location) > 1 and location[0] == "model" and location[1] in _FAMILIES:
        family = location.pop(1)
    else:
        family = ""
    key = ".".join(location)
    if first["type"] == "extra_forbidden":
        return f"{key}: not a setting of model.family {family!r}"
    if first["type"] == "value_error":
        return f"{key}.{first['ctx']['error']}"
    if first["type"].startswith("union_tag"):
        received = first["input"].get("family") if isinstance(first["input"], dict) else None
        return f"model.family: received {_show(received)}, expected {_choices(_FAMILIES)}"
    fields = {
        f"model.{name}": field
        for name, field in (_FAMILIES[family].model_fields if family else {}).items()
    }
    field = fields.get(key) or dict(_walk_fields()).get(key)
    expected = _expectation(field) if field is not None else first["msg"]
    return f"{key}: received {_show(first['input'])}, expected {expected}"


def _types(annotation: Any) -> tuple[Any, ...]:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return tuple(part for part in typing.get_args(annotation) if part is not type(None))
    return (annotation,)


def _expectation(field: Any) -> str:
    kind = _types(field.annotation)[0]
    if typing.get_origin(kind) is Literal:
        return _choices(typing.get_args(kind))
    words = {int: "an integer", float: "a number", bool: "true or false", str: "text"}
    bounds = []
    for bound in field.metadata:
        if isinstance(bound, Ge):
            bounds.append(f"at least {bound.ge:g}" if bound.ge != 0 else "at least 0")
        elif isinstance(bound, Gt):
            bounds.append(f"above {bound.gt:g}")
        elif isinstance(bound, Le):
            bounds.append(f"at most {_plain(bound.le)}")
        elif isinstance(bound, Lt):
            bounds.append(f"below {_plain(bound.lt)}")
    text = words.get(kind, "another value")
    return f"{text}, {' and '.join(bounds)}" if bounds and kind in (int, float) else text


def _plain(number: Any) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:,g}"


def _choices(names: Iterable[str]) -> str:
    return " or ".join(repr(name) for name in names)


def _show(value: Any) -> str:
    """The value as received, short: it may be a million characters, or nested deeply."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
