"""`keras-seq train`: errors are reported before TensorFlow is imported."""

import csv
import gzip
import os

import pytest

LINES = b"".join(b"a dog runs %d times\n" % number for number in range(50))


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """Changes to a folder with a valid corpus; returns a function that adds files to it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.en").write_bytes(LINES)
    (tmp_path / "good.de").write_bytes(LINES)

    def write(**contents: bytes) -> None:
        for name, content in contents.items():
            (tmp_path / name.replace("_", ".")).write_bytes(content)

    return write


GOOD = ["--source", "good.en", "--target", "good.de"]


def refused(outcome, tmp_path) -> str:
    assert (outcome.code, outcome.out) == (2, b"")
    assert not (tmp_path / "run").exists()
    return outcome.error


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        (b"a\nb\nc\n", b"a\nb\n", "bad.en has 3 lines but bad.de has 2"),
        (b"a\n", b"a\nb\n", "bad.en has 1 lines but bad.de has 2"),
        (b"", b"", "bad.en, bad.de: empty, there is nothing to train on"),
        (b"", b"a\n", "bad.en has 0 lines but bad.de has 1"),
        (b"\n\n", b"a\nb\n", "no pair has text on both sides (2 pairs)"),
        (b"a\nb\n\xc3(\n", b"a\nb\nc\n", "bad.en:3: invalid UTF-8 (byte 0xc3 at position 1)"),
        (b"a\n", b"\xff\xfea\n", "bad.de:1: invalid UTF-8"),
        # str.splitlines or text mode would end a line at some of these characters.
        ("a\rb\u2028c\u2029d\u0085e\x0bf\x0cg\x1ch\0".encode(), b"a\nb\n", "has 1 lines but"),
    ],
)
@pytest.mark.usefixtures("without_tensorflow")
def test_train_rejects_unusable_text(keras_seq_command, corpus, tmp_path, source, target, words):
    corpus(bad_en=source, bad_de=target)
    outcome = keras_seq_command("train", "run", "--source", "bad.en", "--target", "bad.de")
    assert words in refused(outcome, tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a\tb\nc d\n", "bad.tsv:2: no tab"),
        (b"a\tb\nc\td\te\tf\n", "bad.tsv:2: 3 tabs"),
    ],
)
@pytest.mark.usefixtures("without_tensorflow")
def test_train_rejects_pairs_without_exactly_one_tab(
    keras_seq_command, corpus, tmp_path, content, words
):
    corpus(bad_tsv=content)
    assert words in refused(keras_seq_command("train", "run", "--pairs", "bad.tsv"), tmp_path)


COLUMNS = ["--columns", "source=en,target=de"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--pairs", "three.csv"], "three.csv:1: 3 columns (1 'id', 2 'en', 3 'de'), expected 2: "),
        (
            ["--pairs", "three.csv", "--columns", "source=en,target=fr"],
            "three.csv:1: no column 'fr' in the header (1 'id', 2 'en', 3 'de'): give another name",
        ),
        (
            ["--pairs", "three.csv", "--columns", "source=1,target=4"],
            "three.csv:1: 3 columns (1 'id', 2 'en', 3 'de'), expected at least 4 for --columns",
        ),
        (
            ["--pairs", "three.csv", *COLUMNS, "--valid-pairs", "two.tsv"],
            "two.tsv:1: no column 'en' in the header (1 'a', 2 'b')",
        ),
        (
            ["--pairs", "three.csv", "--columns", "text=en,label=de"],
            "data.columns: received 'text=en,label=de', expected source=COLUMN,target=COLUMN",
        ),
        ([*GOOD, *COLUMNS], "data.columns: received 'source=en,target=de' without data.pairs, exp"),
        (
            ["--task", "language-model", "--text", "good.en", *COLUMNS],
            "data.columns: received 'source=en,target=de', which is for task 'translate' or 'class",
        ),
        (
            ["--task", "tag", "--labeled", "two.tsv", "--columns", "text=1,label=2"],
            "data.columns: received 'text=1,label=2', expected text=COLUMN,tags=COLUMN",
        ),
    ],
)
@pytest.mark.usefixtures("without_tensorflow")
def test_columns_that_a_file_does_not_have_are_refused(
    keras_seq_command, corpus, tmp_path, arguments, words
):
    corpus(three_csv=b"id,en,de\n1,a dog,ein Hund\n" * 30, two_tsv=b"a\tb\n")
    for command in ("train", "prepare"):
        assert words in refused(keras_seq_command(command, "run", *arguments), tmp_path)


@pytest.mark.slow
@pytest.mark.weekly
def test_training_on_columns_of_csv_gives_the_weights_of_plain_pairs(
    keras_seq_command, corpus, tmp_path
):
    rows = [(f"a dog, {number}", f'"ein" Hund {number}') for number in range(60)]
    plain = "".join(f"{source}\t{target}\n" for source, target in rows)
    with open("table.csv", "w", newline="") as file:
        csv.writer(file).writerows([("de", "id", "en"), *((b, 1, a) for a, b in rows)])
    corpus(plain_tsv=plain.encode())
    small = {
        "model.members": 1,
        "model.num_encoder_layers": 1,
        "model.num_decoder_layers": 1,
        "model.units": 16,
        "model.feedforward_units": 16,
        "training.max_steps": 2,
        "training.validate_every": 2,
        "training.checkpoint_every": 2,
        "search.max_length": 4,
    }
    options = [f"--set={key}={value}" for key, value in small.items()]
    plain_run = keras_seq_command("train", "plain", "--pairs", "plain.tsv", *options)
    table = ["train", "table", "--pairs", "table.csv", *options]
    table_run = keras_seq_command(*table, *COLUMNS)
    assert (plain_run.code, table_run.code) == (0, 0), plain_run.err + table_run.err
    assert "table.csv: read as CSV, with commas between columns" in table_run.err
    weights = [
        (tmp_path / run / "checkpoints/step-00000002/weights.safetensors").read_bytes()
        for run in ("plain", "table")
    ]
    assert weights[0] == weights[1]
    assert keras_seq_command(*table, *COLUMNS).code == 0
    other = keras_seq_command(*table, "--columns", "source=de,target=en")
    assert other.code == 2
    assert "data.columns source=en,target=de -> source=de,target=en" in other.error


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(os.urandom(1000).hex().encode() * 50)[:-500], "truncated"),
        (gzip.compress(LINES)[:-8], "truncated"),
        (LINES, "not a valid gzip file"),
        (b"", "truncated"),
    ],
)
@pytest.mark.usefixtures("without_tensorflow")
def test_train_rejects_broken_gzip_files(keras_seq_command, corpus, tmp_path, content, words):
    corpus(bad_en_gz=content)
    outcome = keras_seq_command("train", "run", "--source", "bad.en.gz", "--target", "good.de")
    error = refused(outcome, tmp_path)
    assert error.startswith("bad.en.gz: ") and words in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no text to train on: give --source and --target, or --pairs"),
        (["--source", "good.en"], "--source without --target"),
        (["--source", "absent.en", "--target", "good.de"], "absent.en: no such file"),
        (["--source", ".", "--target", "good.de"], ".: is a directory"),
        (["--source", "-", "--target", "good.de"], "the text is read more than once"),
        ([*GOOD, "--pairs", "good.en"], "both --pairs and --source"),
        ([*GOOD, "--weights", "absent.txt"], "absent.txt: no such file"),
        ([*GOOD, "--weights", "good.en"], "good.en:1: received 'a dog runs 0 times', expected one"),
        (["--source", "good.*", "--target", "good.de"], "--source names 2 files, but --target 1"),
        (["--source", "bad.*", "--target", "good.de"], "bad.*: no file has a name like this"),
        ([*GOOD, "--valid-source", "good.en"], "--valid-source without --valid-target"),
        ([*GOOD, "--valid-pairs", "absent.tsv"], "absent.tsv: no such file"),
        ([*GOOD, "--preset", "transformer-tiy"], "did you mean transformer-tiny?"),
        ([*GOOD, "--set", "max_step=5"], "unknown setting 'max_step' - did you mean training.max"),
        ([*GOOD, "--set", "training.batch_token=5"], "did you mean training.batch_tokens?"),
        ([*GOOD, "--set", "training.batch_tokens"], "expected key=value"),
        ([*GOOD, "--set", "model.units=-1"], "model.units: received -1, expected an integer"),
        ([*GOOD, "--max-steps", "0"], "training.max_steps: received 0"),
        ([*GOOD, "--max-minutes", "nan"], "training.max_minutes: received nan"),
        ([*GOOD, "--precision", "half"], "training.precision: received 'half', expected 'float32'"),
        ([*GOOD, "--settings", "absent.toml"], "absent.toml: no such file"),
        ([*GOOD, "--settings", "good.en"], "good.en: not valid TOML"),
        ([*GOOD, "--set", "tokenizer.size=90000"], "is larger than this corpus allows: at most"),
        ([*GOOD, "--set", "data.max_source_length=1"], "longer than 1 or 200 tokens"),
        ([*GOOD, "--dry-run", "--set", "tokenizer.size=90000"], "larger than this corpus allows"),
    ],
)
@pytest.mark.usefixtures("without_tensorflow")
def test_train_rejects_wrong_options(keras_seq_command, corpus, tmp_path, arguments, words):
    assert words in refused(keras_seq_command("train", "run", *arguments), tmp_path)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything"
)
@pytest.mark.usefixtures("without_tensorflow")
def test_train_reports_a_file_without_read_permission(keras_seq_command, corpus, tmp_path):
    (tmp_path / "good.en").chmod(0)
    outcome = keras_seq_command("train", "run", *GOOD)
    assert "good.en: permission denied" in refused(outcome, tmp_path)


@pytest.mark.usefixtures("without_tensorflow")
def test_train_refuses_a_directory_with_other_files(keras_seq_command, corpus, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    for arguments in ([], ["--overwrite"]):
        outcome = keras_seq_command("train", "mine", *GOOD, *arguments)
        assert outcome.code == 2
        assert "mine: not empty and not a run" in outcome.error
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years of work"
    assert "expected a new or empty directory" in keras_seq_command("train", "good.en", *GOOD).error


def test_train_dry_run_prints_settings_and_writes_nothing(keras_seq_command, corpus, tmp_path):
    options = ["--set", "model.units=32", "--precision", "mixed_bfloat16"]
    outcome = keras_seq_command("train", "run", *GOOD, "--dry-run", *options)
    assert outcome.code == 0
    text = outcome.out.decode()
    assert "units = 32" in text and 'precision = "bfloat16"' in text
    assert "parameters" in text and "a dog runs" in text
    assert not (tmp_path / "run").exists()
    assert "preset transformer-tiny" in outcome.err


@pytest.mark.process
def test_train_writes_a_run_and_prints_one_line(keras_seq_process, corpus, tmp_path):
    arguments = [*GOOD, "--max-steps", "2", "--seed", "5"]
    small = {"num_encoder_layers": 1, "num_decoder_layers": 1, "units": 16, "feedforward_units": 16}
    for key, value in small.items():
        arguments += ["--set", f"model.{key}={value}"]
    outcome = keras_seq_process("train", "run", *arguments, "--set", "training.validate_every=2")
    assert outcome.code == 0, outcome.err
    assert len(outcome.lines) == 1
    assert outcome.lines[0].startswith("run: BLEU = ")
    assert "|tok:13a|" in outcome.lines[0]
    assert "seed = 5" in (tmp_path / "run" / "settings.toml").read_text()
    # TensorFlow's own messages are suppressed.
    for noise in ("oneDNN", "cuda", "CUDA", "WARNING", "rebuild TensorFlow"):
        assert noise not in outcome.err
    again = keras_seq_process("train", "run", *arguments, "--set", "training.validate_every=2")
    assert (again.code, again.out) == (0, outcome.out)
    assert "trained already, 2 updates" in again.err
    never = keras_seq_process("train", "run", *arguments, "--resume", "never")
    assert (never.code, "--overwrite" in never.error) == (2, True)
