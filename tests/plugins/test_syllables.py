"""A vocabulary whose pieces a plugin learns."""

import random
from pathlib import Path

import pytest

import keras_seq
from keras_seq.plugins import import_plugin
from keras_seq.text import InputError, TextRules, Tokenizer, model_of_pieces

PLUGIN = Path(__file__).parents[2] / "examples" / "plugins" / "syllables.py"
RULES = TextRules("unigram", "nfc")


def tokenizer_of(pieces, **options):
    return Tokenizer.from_bytes(model_of_pieces(pieces, RULES, **{"size": 300} | options))


def test_text_is_cut_into_the_pieces_with_the_largest_sum_of_scores():
    tokenizer = tokenizer_of([(" ka", -1.0), ("ta", -1.5), ("k", -9.0), (" kata", -2.4)])
    cut = [[tokenizer.pieces[i].text for i in ids] for ids in tokenizer.encode(["kata", "ka taka"])]
    assert cut == [["▁kata"], ["▁ka", "▁", "ta", "k", "<0x61>"]]


def test_no_text_is_lost():
    tokenizer = tokenizer_of([(" ka", -1.0), ("ta", -1.5)], symbols=["<x>"])
    for text in ("kata", "Zürich 日本語", "a <x> b", "kataka ka"):
        assert tokenizer.decode(tokenizer.encode([text])) == [text]


@pytest.mark.parametrize(
    ("pieces", "options", "message"),
    [
        ([("", -1.0)], {}, "the piece ''"),
        ([("a b", -1.0)], {}, "the piece 'a b': expected text without spaces after the first"),
        ([("a", -1.0), ("a", -2.0)], {}, "the piece 'a': received twice"),
        ([("a", float("nan"))], {}, "the piece 'a': received the score nan"),
        ([("a", -1.0)], {"size": 261}, "2 pieces and 260 other entries, expected at most 261"),
    ],
)
def test_pieces_that_cannot_be_used_are_refused(pieces, options, message):
    with pytest.raises(InputError, match=message):
        tokenizer_of(pieces, **options)


@pytest.mark.slow
@pytest.mark.weekly
def test_syllables_are_learned_used_and_exported(tmp_path, keras_seq_command):
    generator = random.Random(1)
    words = ["ka", "ta", "mi", "no"]
    lines = [
        "".join(generator.choices(words, k=3)) + " " + "".join(generator.choices(words, k=2))
        for _ in range(80)
    ]
    (tmp_path / "pairs.tsv").write_text("".join(f"{line}\t{line}\n" for line in lines))
    options = ["--pairs", tmp_path / "pairs.tsv", "--valid-pairs", tmp_path / "pairs.tsv"]
    settings = {
        "tokenizer.kind": "syllables",
        "tokenizer.size": 280,
        "model.units": 16,
        "model.num_heads": 2,
        "model.num_encoder_layers": 1,
        "model.num_decoder_layers": 1,
        "training.max_steps": 2,
        "training.validate_every": 2,
    }
    run = tmp_path / "run"
    plugin = f"--import={PLUGIN}"
    outcome = keras_seq_command(
        "train", run, *options, plugin, *(f"--set={key}={value}" for key, value in settings.items())
    )
    assert outcome.code == 0, outcome.err
    import_plugin(str(PLUGIN))
    opened = keras_seq.Run.open(run)
    assert opened.settings.plugins == ["syllables.py"]
    tokenizer = opened.target_tokenizer
    (ids,) = tokenizer.encode(["kami nota"])
    assert [tokenizer.pieces[i].text for i in ids] == ["▁ka", "mi", "▁no", "ta"]
    exported = keras_seq_command("export", run, tmp_path / "served", plugin, "--verify", 8)
    assert exported.code == 0, exported.err


def test_kind_of_no_plugin_is_refused():
    with pytest.raises(keras_seq.SettingsError, match="tokenizer.kind: received 'syllables', exp"):
        keras_seq.load_settings(overrides=["tokenizer.kind=syllables"])
    with pytest.raises(
        keras_seq.SettingsError, match="tokenizer.source.kind: received 'syllables'"
    ):
        keras_seq.load_settings(overrides=["tokenizer.source.kind=syllables"])


def test_prepared_text_and_its_trainings_name_the_plugin(tmp_path, keras_seq_command):
    (tmp_path / "pairs.tsv").write_text("kami nota\tno ta\n" * 40)
    plugin = f"--import={PLUGIN}"
    files = ("--pairs", tmp_path / "pairs.tsv", "--valid-pairs", tmp_path / "pairs.tsv")
    kind = ("--set=tokenizer.kind=syllables", "--set=tokenizer.size=280")
    prepared = keras_seq_command("prepare", tmp_path / "prepared", *files, plugin, *kind)
    assert prepared.code == 0, prepared.err
    stored = (tmp_path / "prepared" / "settings.toml").read_text()
    assert '"syllables.py"' in stored
    dry = keras_seq_command(
        "train", tmp_path / "run", "--prepared", tmp_path / "prepared", plugin, "--dry-run"
    )
    assert dry.code == 0, dry.err


def test_extra_spaces_of_targets_are_kept(tmp_path):
    import_plugin(str(PLUGIN))
    (tmp_path / "pairs.tsv").write_text("kami\tno  ta\n" * 40)
    settings = keras_seq.load_settings(
        overrides={
            "data.pairs": str(tmp_path / "pairs.tsv"),
            "data.valid_pairs": str(tmp_path / "pairs.tsv"),
            "tokenizer.kind": "syllables",
            "tokenizer.size": 280,
            "tokenizer.joint": False,
        }
    )
    run = keras_seq.preparation.open_or_prepare(settings, tmp_path / "run")
    tokenizer = run.target_tokenizer
    assert tokenizer.decode(tokenizer.encode(["no  ta"])) == ["no  ta"]
    run.unlock()
