"""Settings: layers, bounds, suggestions for typos, and hostile text."""

import time

import pytest

from keras_seq.settings import (
    PRESETS,
    CorpusShape,
    Settings,
    SettingsError,
    choose_preset,
    in_proportion,
    in_proportion_to_texts,
    load_settings,
    setting_keys,
)
from keras_seq.settings.settings import walk_fields


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_survives_toml(preset):
    settings = load_settings(preset=preset)
    assert Settings.from_toml(settings.to_toml()) == settings


@pytest.mark.parametrize(
    ("preset", "layers", "units", "feedforward_units", "heads"),
    [
        ("transformer-tiny", (4, 4), 128, 256, 4),
        ("transformer-small", (3, 3), 256, 1024, 4),
        ("transformer-base", (6, 6), 512, 2048, 8),
        ("transformer-big", (6, 6), 1024, 4096, 16),
    ],
)
def test_transformer_presets_have_the_expected_shapes(
    preset, layers, units, feedforward_units, heads
):
    model = load_settings(preset=preset).model
    assert (model.num_encoder_layers, model.num_decoder_layers) == layers
    assert (model.units, model.feedforward_units, model.num_heads) == (
        units,
        feedforward_units,
        heads,
    )


def test_every_setting_has_a_description():
    for key, field in walk_fields():
        assert field.description, key


def test_overrides_take_precedence_over_file_and_file_over_preset(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("seed = 7\n[training]\nbatch_tokens = 100\nwarmup_steps = 5\n")
    settings = load_settings(
        preset="transformer-tiny", file=file, overrides=["training.warmup_steps=6"]
    )
    assert settings.model.units == 128
    assert settings.training.batch_tokens == 100
    assert settings.training.warmup_steps == 6
    assert settings.seed == 7


def test_explicit_settings_are_distinguished_from_preset_settings():
    assert "size" not in load_settings(preset="transformer-base").tokenizer.model_fields_set
    given = load_settings(preset="transformer-base", overrides={"tokenizer.size": 900})
    assert given.tokenizer.model_fields_set == {"size"}


@pytest.mark.parametrize(
    ("task", "model", "family"),
    [
        ("translate", {}, "transformer"),
        ("translate", {"model.cell": "gru"}, "rnn"),
        ("translate", {"model.copy": True}, "transformer"),
        ("language-model", {"model.cell": "gru"}, "lm-rnn"),
        ("classify", {"model.units": 8}, "classifier-rnn"),
        ("classify", {"model.num_heads": 2}, "classifier-transformer"),
    ],
)
def test_the_family_is_the_first_that_has_the_given_settings(task, model, family):
    data = {"language-model": "data.text", "classify": "data.labeled"}.get(task, "data.pairs")
    settings = load_settings(overrides={"task": task, data: "file", **model})
    assert settings.model.family == family


def test_other_model_family_drops_the_model_settings_of_the_preset():
    settings = load_settings(preset="transformer-tiny", overrides=["model.family=rnn"])
    assert settings.model.family == "rnn"
    assert settings.training.batch_tokens == 4096


@pytest.mark.parametrize(
    ("override", "key", "value"),
    [
        ("data.source=2024", "source", "2024"),
        ("data.source=a=b.txt", "source", "a=b.txt"),
        ("data.source=none", "source", None),
        ('data.source=["a*.txt", "b"]', "source", ["a*.txt", "b"]),
        ("data.source=[ab].txt", "source", "[ab].txt"),
        ('data.source=["a", 1]', "source", '["a", 1]'),
        ("data.file_weights=[1, 0.5]", "file_weights", [1.0, 0.5]),
        ("data.file_weights=none", "file_weights", None),
        ("data.max_source_length=9", "max_source_length", 9),
        ("data.max_source_length= 9 ", "max_source_length", 9),
    ],
)
def test_override_values_are_parsed_by_the_type_of_their_key(override, key, value):
    assert getattr(load_settings(overrides=[override]).data, key) == value


def test_subword_alpha_must_be_below_1_for_bpe():
    overrides = ["tokenizer.kind=bpe", "training.subword_alpha=1"]
    with pytest.raises(SettingsError, match="^training.subword_alpha: received 1, expected below"):
        load_settings(overrides=overrides)
    assert load_settings(overrides=overrides[1:]).training.subword_alpha == 1


def test_none_is_kept_as_a_value_where_it_is_a_choice():
    settings = load_settings(overrides={"search.length_normalization": "none"})
    assert settings.search.length_normalization == "none"


def test_none_unsets_an_optional_setting():
    assert load_settings(preset="demo").training.max_steps is not None
    settings = load_settings(preset="demo", overrides=["training.max_steps=none"])
    assert settings.training.max_steps is None


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("max_steps=3", "'max_steps' - did you mean training.max_steps?"),
        ("training.max_step=3", "did you mean training.max_steps?"),
        ("trainin.max_steps=3", "did you mean training.max_steps?"),
        ("training.beam_size=3", "did you mean search.beam_size?"),
        ("training.learning_rat=3", "did you mean training.learning_rate?"),
        ("wholly_else=3", "unknown setting 'wholly_else'"),
        ("seed", "received 'seed', expected key=value"),
        ("training.max_steps=0", "training.max_steps: received 0, expected an integer, at least 1"),
        ("training.max_steps=ten", "training.max_steps: received 'ten', expected an integer"),
        ("training.max_steps=1.5", "training.max_steps: received 1.5, expected an integer"),
        ("training.max_steps=true", "training.max_steps: received True, expected an integer"),
        ("training.ema=1.0", "training.ema: received 1.0, expected a number, at least 0 and below"),
        ("training.learning_rate=nan", "training.learning_rate: received nan"),
        ("training.learning_rate=inf", "training.learning_rate: received inf"),
        ("model.units=10000000000", "model.units: received 10000000000, expected an integer"),
        ("model.num_encoder_layers=1000000", "at most 100"),
        ("model.num_heads=3", "model.num_heads: received 3, expected a divisor of model.units"),
        ("model.family=cnn", "model.family: received 'cnn', expected 'transformer', 'rnn', "),
        ("model.position=absolute", "model.position: received 'absolute', expected 'sinusoidal', "),
        ("tokenizer.size=1000001", "tokenizer.size: received 1000001"),
        ("tokenizer.kind=words", "tokenizer.kind: received 'words', expected 'auto', 'unigram', "),
        ("tokenizer.joint=1", "tokenizer.joint: received 1, expected true or false"),
        ("search.n_best=6", "search.n_best: received 6, expected at most search.beam_size (5)"),
        ("training.word_dropout=1.0", "training.word_dropout: received 1.0, expected a number"),
        ("training.subword_nbest=0", "training.subword_nbest: received 0, expected at least 1, or"),
        ("seed=-1", "seed: received -1"),
        ("data.source=", "data.source: received '', expected text or a list of texts"),
        ("data.weights=" + "x" * 5000, "data.weights: received 'xxx"),
        ("data.file_weights=2", "data.file_weights: received 2, expected a list of numbers"),
        ("data.file_weights=[1, -2]", "data.file_weights: received [1.0, -2.0], expected numbers"),
        ("data.file_weights=[1, nan]", "data.file_weights: received "),
        ("data.file_weights=['a']", "data.file_weights: received 'a', expected a list of numbers"),
        ("seed=0x" + "f" * 9999, "seed: received an integer of 39996 bits"),
        ("training.max_minutes=" + "[" * 5000, "training.max_minutes: received '[[["),
    ],
)
def test_invalid_override_raises_a_short_one_line_error(override, words):
    with pytest.raises(SettingsError) as error:
        load_settings(overrides=[override])
    assert words in str(error.value)
    assert len(str(error.value)) < 350
    assert "\n" not in str(error.value)


def test_learned_positions_must_cover_the_longest_sequence():
    learned = {"model.position": "learned", "model.max_positions": 201}
    load_settings(overrides=learned | {"search.max_length": 200})
    for key in ("data.max_source_length", "data.max_target_length", "search.max_length"):
        with pytest.raises(SettingsError, match=rf"expected more than {key} \(201\) with model.po"):
            load_settings(overrides=learned | {"search.max_length": 200, key: 201})
    language_model = learned | {"data.max_source_length": 999, "search.max_length": 200}
    load_settings(preset="lm-transformer", overrides=language_model)


def test_rotary_positions_need_heads_of_even_width():
    odd = {"model.position": "rotary", "model.units": 12, "model.num_heads": 4}
    with pytest.raises(SettingsError, match="model.units / model.num_heads is 3"):
        load_settings(overrides=odd)


@pytest.mark.parametrize("widths", ["[]", "[0]", "[3, 3]", "[101]"])
def test_invalid_widths_of_filters_are_refused(widths):
    overrides = ["task=classify", "model.family=classifier-cnn", f"model.widths={widths}"]
    with pytest.raises(SettingsError, match="model.widths: received"):
        load_settings(overrides=overrides)


def test_precision_accepts_the_keras_policy_name(tmp_path):
    file = tmp_path / "half.toml"
    file.write_text('[training]\nprecision = "mixed_float16"\n')
    assert load_settings(file=file).training.precision == "float16"
    half = load_settings(overrides=["training.precision=mixed_bfloat16"])
    assert half == load_settings(overrides={"training.precision": "bfloat16"})
    assert 'precision = "bfloat16"' in half.to_toml()
    for wrong in ("mixed_float32", "half", 16):
        with pytest.raises(SettingsError, match="precision: received .* expected 'float32', "):
            load_settings(overrides={"training.precision": wrong})


def test_unknown_preset_suggests_the_closest_name():
    with pytest.raises(SettingsError, match="did you mean transformer-tiny"):
        load_settings(preset="transformer-tny")
    with pytest.raises(SettingsError, match="did you mean rnn-base"):
        load_settings(preset="rnn_base")


def test_numeric_settings_outside_the_model_section_have_bounds():
    """The bounds reject absurdly large and absurdly small numbers."""
    unbounded = []
    for key in setting_keys():
        if key.startswith("model."):
            continue
        for absurd in (10**12, -(10**12)):
            try:
                load_settings(overrides={key: absurd})
            except SettingsError:
                continue
            unbounded.append(key)
    assert unbounded == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = " + "[" * 200_000, "nested too deeply"),
        ("a = " + "{a=" * 60_000, "nested too deeply"),
        (".".join("a" * 100_000) + " = 1", "too many dots"),
        ("[" + ".".join("a" * 100_000) + "]", "too many dots"),
        ("x = 1\n" * 100_000, "larger than"),
        ("seed = " + "9" * 5000, "not valid TOML"),
        ("seed = 1\nseed = 2", "not valid TOML"),
        ("model = 3", "model: received 3, expected a table"),
        ("[model]\nunits = 1e10", "model.units: received 10000000000.0"),
        ("[model]\nunits = -5", "model.units: received -5"),
        ("[model]\nunits = nan", "model.units: received nan"),
        ('[model]\nunits = "many"', "model.units: received 'many'"),
        ("[model]\nfamily = {a = 1}", "model.family: received a table"),
        ("[training]\nmax_step = 3", "did you mean training.max_steps?"),
    ],
)
def test_hostile_toml_is_refused_within_five_seconds(tmp_path, text, words):
    file = tmp_path / "settings.toml"
    file.write_text(text)
    start = time.monotonic()
    with pytest.raises(SettingsError) as error:
        load_settings(file=file)
    assert time.monotonic() - start < 5
    assert str(error.value).startswith(f"{file}: ")
    assert words in str(error.value)
    assert len(str(error.value)) < 350 + len(str(file))


def test_unreadable_settings_file_raises_settings_error(tmp_path):
    with pytest.raises(SettingsError, match="no such file"):
        load_settings(file=tmp_path / "absent.toml")
    with pytest.raises(SettingsError, match="is a directory"):
        load_settings(file=tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"# \xff\n")
    with pytest.raises(SettingsError, match="not UTF-8"):
        load_settings(file=tmp_path / "latin.toml")


def sentences(pairs):
    return CorpusShape(pairs, symbols=False, tokens=14)


def symbols(pairs):
    return CorpusShape(pairs, symbols=True, tokens=7)


def test_the_preset_follows_the_size_of_the_corpus():
    sizes = (1, 100_000, 500_000, 5_000_000, 10**8)
    assert [choose_preset(sentences(pairs))[0] for pairs in sizes] == [
        "transformer-tiny",
        "transformer-tiny",
        "transformer-small",
        "transformer-base",
        "transformer-big",
    ]
    rnn = [choose_preset(sentences(pairs), "rnn")[0] for pairs in (10, 10**7)]
    assert rnn == ["rnn-small", "rnn-base"]
    reasons = {
        family: choose_preset(sentences(10**7), family)[1] for family in ("rnn", "classifier-bag")
    }
    assert reasons == {
        "rnn": "the size of the corpus (10,000,000 pairs, more than 100,000)",
        # This family has one preset for all sizes.
        "classifier-bag": "the task and the model's family",
    }


def test_the_preset_follows_the_units_of_a_small_corpus():
    sizes = (800, 1_001, 5_001, 20_001)
    chosen = {
        None: ["transformer-symbols", "rnn-symbols", "transformer-symbols", "transformer-tiny"],
        "rnn": ["rnn-symbols"] * 3 + ["rnn-small"],
        "transformer": ["transformer-symbols"] * 3 + ["transformer-tiny"],
    }
    for family, names in chosen.items():
        assert [choose_preset(symbols(pairs), family)[0] for pairs in sizes] == names
    inflected = symbols(1_001)._replace(inflected=True)
    assert choose_preset(inflected)[0] == "transformer-symbols"


def test_the_model_of_symbols_follows_the_size_and_the_features():
    def model_of(pairs, family="transformer", inflected=False):
        shape = symbols(pairs)._replace(inflected=inflected)
        return in_proportion(shape, family)["model"]

    assert [model_of(pairs)["members"] for pairs in (1_000, 1_001)] == [2, 1]
    assert [model_of(pairs, "rnn")["members"] for pairs in (1_000, 5_000, 5_001)] == [4, 2, 1]
    assert "units" not in model_of(5_000) and model_of(5_001)["units"] == 128
    assert model_of(800, inflected=True) == {
        "copy": True,
        "feature_encoder": "linear",
        "members": 2,
    }
    # A joined pair would mix the features of two forms.
    assert "data" in in_proportion(symbols(800), "transformer")
    assert "data" not in in_proportion(symbols(800)._replace(features=True), "transformer")
    # Recurrent models read features as tokens.
    assert model_of(800, "rnn", inflected=True) == {"members": 4}


@pytest.mark.parametrize("make", [sentences, symbols])
def test_a_small_corpus_has_settings_in_proportion(make):
    """Warmup, validation and weight averaging fit into the training of a corpus of any size."""
    for pairs in (1, 30, 800, 5_000, 20_000):
        shape = make(pairs)
        name, _ = choose_preset(shape)
        family = PRESETS[name]["model"]["family"]
        settings = load_settings(preset=name, adjustments=in_proportion(shape, family))
        training = settings.training
        # Concatenated pairs are twice as long.
        tokens = pairs * (shape.tokens + 1) * (1 + 2 * settings.data.concatenation)
        updates = training.max_epochs * max(1, tokens / training.batch_tokens)
        assert training.warmup_steps <= max(50, updates / 10)
        assert 4 <= updates / training.validate_every or updates < 100
        # The weight average covers only a part of the training.
        assert 1 / (1 - training.ema) <= max(updates / 4, 100)


@pytest.mark.parametrize("name", ["classify-cnn", "tag-birnn"])
@pytest.mark.parametrize("pairs", [1, 30, 800, 5_000, 70_000, 10_000_000])
def test_label_settings_are_in_proportion_to_the_corpus(name, pairs):
    adjustments = in_proportion_to_texts(CorpusShape(pairs, False, 9.0))
    training = load_settings(preset=name, adjustments=adjustments).training
    texts = training.batch_tokens / 10
    assert 16 <= texts <= 256
    assert 4 <= training.max_epochs <= 40
    updates_per_epoch = max(1, pairs / texts)
    assert training.warmup_steps <= max(20, 0.06 * training.max_epochs * updates_per_epoch)
    # Two validations an epoch, so that early stopping ends long before the last of many epochs.
    assert training.validate_every == pytest.approx(max(10, updates_per_epoch / 2), abs=1)


def test_given_settings_stand_over_those_in_proportion():
    settings = load_settings(
        preset="rnn-symbols",
        adjustments=in_proportion(symbols(800), "rnn"),
        overrides=["training.warmup_steps=7"],
    )
    assert settings.training.warmup_steps == 7
    expected = in_proportion(symbols(800), "rnn")["training"]["max_epochs"]
    assert settings.training.max_epochs == expected
