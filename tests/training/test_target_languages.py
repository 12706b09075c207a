"""One model for two target languages, on words that are copied in capitals or reversed."""

import itertools
import json
import random
from types import SimpleNamespace

import numpy as np
import pytest

import keras_seq
from keras_seq import runtime
from keras_seq.jobs import translate_files
from keras_seq.jobs.chunks import Chunk
from keras_seq.jobs.translation_task import TranslationTask
from keras_seq.preparation.preparing import prepare_run
from keras_seq.run import Run
from keras_seq.serving import SavedModelTranslator, export_saved_model
from keras_seq.serving.http.errors import RequestError
from keras_seq.serving.http.model import LoadedModel
from keras_seq.serving.onnx_translator import OnnxTranslator
from keras_seq.settings import SettingsError
from keras_seq.text import InputError, Tokenizer, split_language

COLUMNS = "source=1,target=2,target_language=3"
WORDS = ["".join(letters) for letters in itertools.product("abcde", repeat=3)]
SHOWN = ["abc", "eda", "bbd", "cea"]
NO_LANGUAGE = "no target language for 'abc', expected one of reversed, up"


def write_pairs(path, up=WORDS, reversed_=WORDS):
    lines = [f"{word}\t{word.upper()}\tup\n" for word in up]
    lines += [f"{word}\t{word[::-1]}\treversed\n" for word in reversed_]
    path.write_text("".join(lines))
    return path


def settings_of(data, **overrides):
    values = {
        "data.pairs": str(data),
        "data.valid_pairs": str(data),
        "data.columns": COLUMNS,
        "data.concatenation": 0.0,
        "model.members": 1,
        "model.embedding_units": 32,
        "model.encoder_units": 32,
        "model.decoder_units": 64,
        "model.dropout": 0.0,
        "training.batch_tokens": 300,
        "training.learning_rate": 0.01,
        "training.schedule": "constant",
        "training.ema": 0.9,
        "training.max_steps": 110,
        "training.validate_every": 110,
        "training.checkpoint_every": 110,
    }
    values |= {key.replace("__", "."): value for key, value in overrides.items()}
    return keras_seq.load_settings(preset="rnn-symbols", overrides=values)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A trained run, and the notices of its training."""
    folder = tmp_path_factory.mktemp("many")
    notices = []
    settings = settings_of(write_pairs(folder / "many.tsv"))
    keras_seq.train(settings, folder / "run", notice=notices.append)
    return folder / "run", notices


@pytest.mark.slow
@pytest.mark.weekly
def test_the_language_decides_the_translation(trained):
    path, notices = trained
    run = Run.open(path)
    assert run.languages == ["reversed", "up"]
    translator = keras_seq.Translator.load(path)
    up, back = [word.upper() for word in WORDS], [word[::-1] for word in WORDS]
    for to, expected in (("up", up), ("reversed", back)):
        outputs = translator(WORDS, to=to)
        right = sum(output == word for output, word in zip(outputs, expected, strict=True))
        assert right >= 0.98 * len(WORDS)
    assert translator(["abc", "<2up> abc", ""], to="reversed") == ["cba", "ABC", ""]
    for lines, to, message in (
        (["abc"], None, NO_LANGUAGE),
        (["abc"], "fr", "target language: received 'fr', expected one of reversed, up"),
    ):
        with pytest.raises(InputError, match=message):
            translator(lines, to=to)
    assert "2 target languages: reversed 125, up 125" in notices


@pytest.mark.slow
def test_validation_scores_each_language(trained):
    path, notices = trained
    (entry,) = Run.open(path).logs.entries("validation")
    # The total is the mean, because both languages have as many lines.
    assert entry["exact"] == pytest.approx((entry["exact.up"] + entry["exact.reversed"]) / 2)
    (line,) = [line for line in notices if line.startswith("validation at")]
    assert "; reversed: EXACT = " in line and "; up: EXACT = " in line


@pytest.mark.weekly
@pytest.mark.slow
def test_commands_take_the_language(trained, tmp_path, keras_seq_command):
    path, _ = trained
    stdin = "".join(f"{word}\n" for word in SHOWN).encode()
    options = ["--to", "up", "--format", "jsonl", "--alignment", "hard"]
    outcome = keras_seq_command("translate", path, *options, stdin=stdin)
    for line, word in zip(outcome.lines, SHOWN, strict=True):
        row = json.loads(line)
        assert row["source"] == word and row["translations"][0]["text"] == word.upper()
        # The tag is no word of the line.
        assert row["translations"][0]["alignment"] == [[0, 0]]
    assert NO_LANGUAGE in keras_seq_command("translate", path, stdin=b"abc\n").error
    assert (
        "received 'x', expected one of" in keras_seq_command("translate", path, "--to", "x").error
    )

    test = write_pairs(tmp_path / "test.tsv", SHOWN, SHOWN[:2])
    outcome = keras_seq_command("evaluate", path, "--pairs", test, "-m", "exact", "--json")
    result = json.loads(outcome.out)
    assert result["metrics"]["exact"]["value"] == 100.0
    assert result["languages"].keys() == {"reversed", "up"}
    assert "|bs:1000" in result["languages"]["up"]["exact"]["signature"]
    (tmp_path / "a").write_text("".join(f"{word}\n" for word in SHOWN))
    (tmp_path / "b").write_text("".join(f"{word.upper()}\n" for word in SHOWN))
    files = ["--source", tmp_path / "a", "--target", tmp_path / "b"]
    outcome = keras_seq_command("evaluate", path, *files, "--to", "up", "-m", "exact,cer", "--json")
    result = json.loads(outcome.out)
    assert result["metrics"]["exact"]["value"] == 100 and "languages" not in result
    # The baseline copies the source without its tag: each of its letters is wrong.
    assert result["baseline"]["metrics"]["cer"]["value"] == 100
    assert NO_LANGUAGE in keras_seq_command("evaluate", path, *files).error
    totals = []
    for to in ("up", "reversed"):
        options = [tmp_path / "a", tmp_path / "b", "--to", to, "--each", "corpus"]
        outcome = keras_seq_command("likelihood", path, *options)
        totals.append(json.loads(outcome.out)["log_probability"])
    assert totals[0] > -10 > totals[1]


@pytest.mark.weekly
@pytest.mark.slow
def test_exports_take_the_language(trained, tmp_path, keras_seq_command):
    path, _ = trained
    run = Run.open(path)
    version = export_saved_model(run, tmp_path / "served", verify=0)
    expected = {to: keras_seq.Translator.load(path)(SHOWN, to=to) for to in ("up", "reversed")}
    loaded = SavedModelTranslator(version)
    assert {to: loaded(SHOWN, to=to) for to in expected} == expected
    outcome = keras_seq_command("translate", version, "abc\n<2up> eda", "--to", "reversed")
    assert outcome.lines == ["cba", "EDA"]
    assert NO_LANGUAGE in keras_seq_command("translate", version, "abc").error

    served = LoadedModel(version, 1)
    names = [b"up", b"reversed", b"xx", b"up"]
    inputs = {
        "text": np.array([b"abc", b"abc", b"abc", b"  "], object),
        "target_language": np.array(names, object),
    }
    served.check_languages({"target_language": np.array(names[:2], object)})
    with pytest.raises(RequestError, match="received 'xx', expected one of reversed, up"):
        served.check_languages(inputs)
    # A stock server cannot refuse an unknown language, so the translation is empty.
    answer = served.run("serving_default", inputs)["translation"].tolist()
    assert answer == [b"ABC", b"cba", b"", b""]
    guide = (tmp_path / "served" / "serving" / "README.md").read_text()
    assert "`target_language`, one of `reversed`, `up`" in guide
    assert '"target_language": "up"' in guide


def test_an_onnx_export_reads_tagged_lines(tmp_path, monkeypatch):
    (tmp_path / "checkpoint.json").write_text('{"languages": ["reversed", "up"]}')
    lines = []
    run = lambda texts: lines.extend(texts) or []  # noqa: E731
    model = SimpleNamespace(task="translate", n_best=1, batch_size=2, run=run)
    monkeypatch.setattr(runtime, "load", lambda folder: model)
    translator = OnnxTranslator(tmp_path)
    translator.translate(["abc", "<2up> abc", ""], to="reversed")
    assert lines == ["<2reversed> abc", "<2up> abc", ""]
    with pytest.raises(InputError, match=NO_LANGUAGE):
        translator.translate(["abc"])


@pytest.mark.slow
def test_a_job_translates_to_one_language(trained, tmp_path):
    search = Run.open(trained[0]).settings.search.model_dump()
    work = TranslationTask((str(trained[0]),), search, to="reversed").start(1)
    assert work(Chunk(0, 0, 1, "words", b"abc\n\n<2up> eda")).body == b"cba\n\nEDA\n"
    (tmp_path / "words").write_text("abc\n")
    with pytest.raises(InputError, match="received 'fr', expected one of reversed, up"):
        translate_files(trained[0], str(tmp_path / "words"), tmp_path / "out", to="fr")


def test_a_temperature_balances_the_vocabulary_and_the_run(tmp_path):
    """Characters of the rare language are frequent enough only if its lines are repeated."""
    data = write_pairs(tmp_path / "many.tsv", WORDS, WORDS[:1])
    sizes = {}
    for temperature in (1.0, 100.0):
        notices = []
        changes = {"data__temperature": temperature, "tokenizer__target__min_count": 50}
        settings = settings_of(data, tokenizer__target__kind="char", **changes)
        run = prepare_run(settings, tmp_path / f"{temperature}", notice=notices.append)
        sizes[temperature] = run.target_tokenizer.encode(["aaa", "AAA"])
    assert "shares of an epoch (data.temperature): reversed 48.8%, up 51.2%" in notices
    # Lowercase letters of the one reversed word are bytes without the repetition.
    piece = run.target_tokenizer.pieces
    assert piece[sizes[100.0][0][0]].text == "a"
    assert sizes[1.0][0][0] < 260 < sizes[1.0][1][0]


def test_a_run_without_languages_refuses_them(tmp_path):
    data = tmp_path / "pairs.tsv"
    data.write_text("".join(f"{word}\t{word}\n" for word in WORDS))
    with pytest.raises(SettingsError, match="temperature: received 5, expected 1 without"):
        settings_of(data, data__columns="source=1,target=2", data__temperature=5)
    settings = settings_of(data, data__columns="source=1,target=2")
    run = prepare_run(settings, tmp_path / "run", notice=[].append)
    assert run.languages == [] and run.source_tokenizer.languages == {}


@pytest.mark.parametrize(
    "override",
    ["data.alignments=a.txt", "tokenizer.separator=_"],
)
def test_settings_that_languages_exclude_are_refused(tmp_path, override):
    values = [f"data.pairs={tmp_path / 'a.tsv'}", f"data.columns={COLUMNS}", override]
    with pytest.raises(SettingsError, match=r"expected .* with target_language in data.columns"):
        keras_seq.load_settings(overrides=values)


def test_an_imported_vocabulary_needs_the_tags(tmp_path):
    data = write_pairs(tmp_path / "many.tsv")
    model = tmp_path / "letters.model"
    options = {"kind": "unigram", "size": 300}
    model.write_bytes(Tokenizer.train(WORDS, **options).to_bytes())
    settings = settings_of(data, tokenizer__source__model=str(model))
    with pytest.raises(InputError, match=r"letters.model: the vocabulary has no symbol '<2rev"):
        prepare_run(settings, tmp_path / "run", notice=[].append)
    tags = ["<2reversed>", "<2up>"]
    model.write_bytes(Tokenizer.train(WORDS, symbols=tags, **options).to_bytes())
    run = prepare_run(settings, tmp_path / "run", notice=[].append)
    assert run.languages == ["reversed", "up"]


def test_symbols_like_tags_are_no_languages_without_the_column(tmp_path):
    data = tmp_path / "pairs.tsv"
    data.write_text("".join(f"{word}\t{word}\n" for word in WORDS))
    columns = "source=1,target=2"
    settings = settings_of(data, data__columns=columns, tokenizer__symbols=["<2up>"])
    run = prepare_run(settings, tmp_path / "run", notice=[].append)
    assert run.languages == [] and "<2up>" in [piece.text for piece in run.source_tokenizer.pieces]


@pytest.mark.slow
def test_a_warm_start_keeps_the_languages(trained, tmp_path):
    data = write_pairs(tmp_path / "many.tsv")
    changes = {"training__from_run": str(trained[0])}
    settings = settings_of(data, data__columns="source=1,target=2", **changes)
    with pytest.raises(InputError, match=r"received 'source=1,target=2', expected the column targ"):
        prepare_run(settings, tmp_path / "run", notice=[].append)
    data.write_text("abc\tABC\tlow\n" * 30)
    with pytest.raises(InputError, match="received 'low', expected one of reversed, up"):
        prepare_run(settings_of(data, **changes), tmp_path / "run", notice=[].append)
    write_pairs(data)
    assert prepare_run(settings_of(data, **changes), tmp_path / "run").languages == [
        "reversed",
        "up",
    ]


def test_each_validation_pair_needs_a_known_language(tmp_path):
    data, valid = write_pairs(tmp_path / "many.tsv"), tmp_path / "valid.tsv"
    valid.write_text("abc\tABC\tlow\n")
    settings = settings_of(data, data__valid_pairs=str(valid))
    with pytest.raises(InputError, match="validation: target language: received 'low', expected"):
        prepare_run(settings, tmp_path / "run", notice=[].append)


def test_a_language_may_have_only_pairs_that_are_held_out(tmp_path):
    data = write_pairs(tmp_path / "many.tsv", WORDS, WORDS[:1])
    # 6 of 126 pairs are held out; a seed that selects the last pair, the only reversed one.
    samples = ((seed, random.Random(seed).sample(range(126), 6)) for seed in range(1000))
    seed = next(seed for seed, sample in samples if 125 in sample)
    settings = settings_of(data, data__valid_pairs=None, seed=seed)
    run = prepare_run(settings, tmp_path / "run", notice=[].append)
    assert run.languages == ["reversed", "up"]
    languages = [split_language(line)[0] for line in run.valid_lines()[0]]
    assert sorted(languages) == ["reversed", *["up"] * 5]
