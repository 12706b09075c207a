"""A corpus prepared by several workers is byte-identical to one prepared by training."""

import csv
import gzip
import shutil

import pytest

from keras_seq.data import TokenPair
from keras_seq.jobs import WorkerExecutor, run_locally
from keras_seq.jobs.corpus_task import pack, pair_chunks, unpack
from keras_seq.preparation import prepare_run, resolve_settings
from keras_seq.preparation.encoding import Encoded, PairEncoder
from keras_seq.run import Run
from keras_seq.settings import SettingsError, load_settings
from keras_seq.text import Example, InputError, Tokenizer
from keras_seq.text.dates import date_pairs

TINY = [
    "tokenizer.kind=unigram",
    "tokenizer.size=700",
    "model.num_encoder_layers=1",
    "model.num_decoder_layers=1",
    "model.units=16",
    "model.feedforward_units=16",
    "model.num_heads=2",
    "training.max_steps=2",
    "training.validate_every=2",
    "training.checkpoint_every=2",
    "training.sample_count=0",
    "search.max_length=4",
]
CHUNKS = 10
SET = [f"--set={key}" for key in TINY]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Three pairs of files, one pair compressed, with about ten chunks."""
    folder = tmp_path_factory.mktemp("corpus")
    pairs = date_pairs(40_000, seed=3)
    for number, opened in enumerate((open, gzip.open, open)):
        part = pairs[number * 13_000 : (number + 1) * 13_000]
        ending = ".gz" if opened is gzip.open else ""
        for side, column in (("en", 0), ("de", 1)):
            with opened(folder / f"{number}.{side}{ending}", "wt", encoding="utf-8") as stream:
                stream.writelines(f"{pair[column]}\n" for pair in part)
    return folder


@pytest.fixture(scope="module")
def text_options(texts):
    return ["--source", f"{texts}/*.en*", "--target", f"{texts}/*.de*"]


@pytest.fixture(scope="module")
def expected(texts, tmp_path_factory):
    """The run that training prepares without workers."""
    overrides = [*TINY, f"data.source={texts}/*.en*", f"data.target={texts}/*.de*"]
    settings, counts = resolve_settings(overrides=overrides)
    return prepare_run(settings, tmp_path_factory.mktemp("alone") / "run", counts=counts).path


@pytest.fixture(params=["local", pytest.param("ray", marks=pytest.mark.weekly)])
def where(request):
    if request.param == "ray":
        pytest.importorskip("ray", reason="the extra ray is not installed")
    return ["--runner", request.param]


def content(path):
    """Contents of all prepared files; the record is left out because it has modification times."""
    return {
        file.relative_to(path).as_posix(): file.read_bytes()
        for folder in ("data", "tokenizer")
        for file in (path / folder).rglob("*")
        if file.is_file() and file.name != "prepared.json"
    }


@pytest.fixture
def start(job_process):
    def call(out, *options):
        return job_process(out, ".work/ids-*/0*", "prepare", out, *SET, "--workers", "2", *options)

    return call


@pytest.mark.weekly
@pytest.mark.process
def test_prepared_corpus_is_identical_after_a_worker_is_killed(
    start, expected, text_options, tmp_path, where
):
    job = start(tmp_path / "out", *text_options, *where)
    # Kill a worker while chunks are left: an idle worker's death is noticed at its next chunk.
    job.stop_one().kill()
    assert len(job.kept()) < CHUNKS - 2
    code, said = job.end()
    assert code == 0, said
    assert said.count("the worker ended") == 1
    assert content(tmp_path / "out") == content(expected)
    assert (tmp_path / "out" / "settings.toml").read_bytes() == (
        expected / "settings.toml"
    ).read_bytes()
    assert not (tmp_path / "out" / ".work").exists()


@pytest.mark.process
@pytest.mark.parametrize("where", ["local"], indirect=True)
def test_killed_preparation_resumes_to_an_identical_corpus(
    start, expected, text_options, tmp_path, where
):
    out = tmp_path / "out"
    job = start(out, *text_options, *where)
    job.stop_one()
    job.wait_for(lambda: len(job.kept()) >= 3)
    job.kill()
    kept = len(job.kept())
    assert 3 <= kept < CHUNKS
    code, said = start(out, *text_options, *where).end()
    assert code == 0, said
    assert "its preparation did not finish and is repeated" in said
    assert "vocabulary learned already" in said
    assert f"{kept} of {CHUNKS} chunks of token ids were done already" in said
    assert content(out) == content(expected)
    assert not (out / ".work").exists()


@pytest.mark.weekly
@pytest.mark.process
def test_finished_preparation_is_not_repeated_without_overwrite(
    keras_seq_command, texts, text_options, tmp_path, monkeypatch
):
    arguments = ["prepare", tmp_path / "out", *text_options, *SET]
    assert keras_seq_command(*arguments).code == 0
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    assert keras_seq_command(*arguments).code == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")} == before
    outcome = keras_seq_command(*arguments, "--set=tokenizer.size=650")
    assert outcome.code == 2
    assert "tokenizer.size 700 -> 650" in outcome.error
    assert keras_seq_command(*arguments, "--set=tokenizer.size=650", "--overwrite").code == 0
    assert Run.open(tmp_path / "out").source_tokenizer.vocabulary_size == 650


@pytest.mark.process
@pytest.mark.weekly
def test_interrupted_preparation_keeps_its_vocabulary_until_text_changes(expected, texts, tmp_path):
    """Interrupts preparation with Ctrl-C and changes the text before the last attempt."""
    for side in ("en", "de"):
        for path in texts.glob(f"*.{side}*"):
            shutil.copy(path, tmp_path)
    overrides = [*TINY, f"data.source={tmp_path}/*.en*", f"data.target={tmp_path}/*.de*"]
    settings, counts = resolve_settings(overrides=overrides)
    notices = []

    def interrupted(task, chunks, **options):
        for number, done in enumerate(run_locally(task, chunks, **options)):
            if number == 4:
                raise KeyboardInterrupt
            yield done

    def prepared(runner):
        executor = WorkerExecutor(tmp_path / "out", runner=runner, notice=notices.append)
        return prepare_run(settings, tmp_path / "out", counts=counts, executor=executor)

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            prepared(interrupted)
    with open(tmp_path / "0.de", "r+b") as stream:
        stream.write(b"9")
    before = content(expected)
    run = prepared(run_locally)
    run.unlock()
    # After the text has changed, nothing stored is reused, not even the vocabulary.
    assert notices == ["vocabulary learned already"]
    settings, counts = resolve_settings(overrides=overrides)
    alone = prepare_run(settings, tmp_path / "alone", counts=counts)
    assert content(run.path) == content(alone.path) != before


def test_packed_chunk_unpacks_to_the_same_pairs():
    tokenizer = Tokenizer.train((source for source, _ in date_pairs(2000)), size=600)
    pairs = [
        Example("5 mai 1999", "1999-05-05", 0.5, ((0, 0), (2, 0))),
        Example("", "x", 1 / 3),
        Example("6 mai 1999", "1999-05-06"),
    ]
    encoded = PairEncoder(tokenizer, tokenizer, 99, 99).encode(pairs)
    back = unpack(pack(encoded))
    assert (back.linked, back.broken) == (encoded.linked, encoded.broken) == (1, 0)
    for pair, other in zip(encoded.pairs, back.pairs, strict=True):
        assert [list(other.source), list(other.target)] == [pair.source, pair.target]
        assert (other.weight, list(other.links)) == (pair.weight, list(pair.links))
    assert len(encoded.pairs[0].links) > 2
    empty = Encoded([TokenPair([], [])])
    assert [len(pair.source) for pair in unpack(pack(empty)).pairs] == [0]
    first, again = (next(pair_chunks(pairs)).key for _ in range(2))
    assert first == again != next(pair_chunks(pairs[1:])).key


def test_prepare_command_equals_prepare_run_with_weights_and_alignments(
    keras_seq_command, tmp_path
):
    lines = [f"a dog runs {n % 7} times" for n in range(200)]
    files = {
        "x.en": lines,
        "x.de": [f"{n % 7} times runs a dog" for n in range(200)],
        "x.weights": [str(n % 3) for n in range(200)],
        "x.links": ["0-3 1-4 2-2 3-0 4-1"] * 200,
    }
    for name, some in files.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in some))
    options = {"source": "en", "target": "de", "weights": "weights", "alignments": "links"}
    flags = {key: str(tmp_path / f"x.{name}") for key, name in options.items()}
    vocabulary = ["tokenizer.size=276"]
    arguments = [f"--{key}={name}" for key, name in flags.items()]
    outcome = keras_seq_command(
        "prepare", tmp_path / "out", *arguments, "--set", *vocabulary, "--preset=transformer-tiny"
    )
    assert outcome.code == 0, outcome.err
    settings = load_settings(
        preset="transformer-tiny",
        overrides=[*vocabulary, *(f"data.{key}={name}" for key, name in flags.items())],
    )
    assert content(tmp_path / "out") == content(prepare_run(settings, tmp_path / "alone").path)


@pytest.mark.process
def test_workers_read_the_same_columns_as_one_process(keras_seq_command, tmp_path):
    rows = [(target, "1", source) for source, target in date_pairs(300)]
    with open(tmp_path / "table.csv", "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("to", "n", "from"), *rows])
    data = {"data.pairs": str(tmp_path / "table.csv"), "data.columns": "source=from,target=to"}
    settings, counts = resolve_settings(overrides=[*TINY, *(f"{k}={v}" for k, v in data.items())])
    assert counts[:2] == (300, 300)
    alone = prepare_run(settings, tmp_path / "alone", counts=counts).path
    arguments = ["prepare", tmp_path / "out", "--pairs", data["data.pairs"], *SET]
    outcome = keras_seq_command(*arguments, "--workers", 2, "--columns", data["data.columns"])
    assert outcome.code == 0, outcome.err
    assert content(tmp_path / "out") == content(alone)


def test_vocabulary_of_other_columns_is_not_reused(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "pairs.tsv").write_text("a dog\tein Hund\tun chien\n" * 20)
    tokenizer = Tokenizer.train(["a dog"] * 20, size=300, lower_if_small=True)
    learned = []

    def learn():
        learned.append(1)
        return tokenizer, tokenizer

    for columns in ("source=1,target=2", "source=1,target=2", "source=1,target=3"):
        data = {"data.pairs": str(tmp_path / "pairs.tsv"), "data.columns": columns}
        WorkerExecutor(tmp_path / "out").tokenizers(load_settings(overrides=data), learn)
    assert len(learned) == 2


# Runs that share prepared text


@pytest.fixture(scope="module")
def shared(expected, tmp_path_factory):
    """A copy of the prepared directory."""
    return shutil.copytree(expected, tmp_path_factory.mktemp("shared") / "prepared")


@pytest.mark.process
@pytest.mark.weekly
def test_training_on_prepared_text_gives_identical_weights(
    keras_seq_command, shared, text_options, tmp_path
):
    one = keras_seq_command("train", tmp_path / "one", "--prepared", shared, *SET)
    assert one.code == 0, one.err
    assert not (tmp_path / "one" / "data" / "train").exists()
    # The run has everything that translation needs.
    assert keras_seq_command("translate", tmp_path / "one", "5 mai 1999").code == 0
    other = keras_seq_command("train", tmp_path / "other", *text_options, *SET)
    assert other.code == 0, other.err
    weights = [
        (tmp_path / name / "checkpoints/step-00000002/weights.safetensors").read_bytes()
        for name in ("one", "other")
    ]
    assert weights[0] == weights[1]
    # The run resumes with a moved directory, but not with changed text.
    moved = shutil.copytree(shared, tmp_path / "moved")
    more = [*SET, "--set=training.max_steps=3"]
    assert keras_seq_command("train", tmp_path / "one", "--prepared", moved, *more).code == 0
    with open(moved / "data" / "train" / "shard-00000.source.ids", "r+b") as stream:
        stream.write(b"\x09")
    outcome = keras_seq_command("train", tmp_path / "one", "--prepared", moved, *more)
    assert outcome.code == 2
    assert "shard-00000.source.ids: changed since the training began" in outcome.error
    outcome = keras_seq_command("train", tmp_path / "one", *text_options, *more)
    assert outcome.code == 2
    assert "data.prepared" in outcome.error


@pytest.mark.slow
@pytest.mark.weekly
@pytest.mark.usefixtures("without_tensorflow")
def test_unusable_prepared_text_and_conflicting_options_are_rejected(
    keras_seq_command, shared, tmp_path
):
    unfinished = shutil.copytree(shared, tmp_path / "unfinished")
    (unfinished / "data" / "prepared.json").unlink()
    sharing = shutil.copytree(shared, tmp_path / "sharing")
    run = Run.open(sharing)
    data = run.settings.data.model_copy(update={"prepared": str(shared)})
    run.update_settings(run.settings.model_copy(update={"data": data}))
    for arguments, words in (
        (["--prepared", tmp_path / "absent"], "absent: no such run directory"),
        (["--prepared", unfinished], "its preparation did not finish: run its command again"),
        (["--prepared", sharing], f"shares the text of {shared}: give that directory"),
        (["--prepared", shared, "--pairs", "x.tsv"], "data.pairs: received 'x.tsv' with data.prep"),
        (["--prepared", shared, "--columns", "source=1,target=2"], "data.columns: received 'sour"),
        (["--prepared", shared, "--set=tokenizer.size=600"], "tokenizer.size: received 600 with"),
        (["--prepared", shared, "--set=data.max_source_length=9"], "was prepared with 200: leave"),
        (["--prepared", shared, "--from-run", "x"], "training.from_run: received 'x' with"),
        (["--prepared", shared, "--set=training.guided_alignment=1"], "without alignments"),
    ):
        outcome = keras_seq_command("train", tmp_path / "run", *arguments)
        assert (outcome.code, outcome.out) == (2, b""), arguments
        assert words in outcome.error
        assert not (tmp_path / "run").exists()


def test_invalid_prepare_commands_exit_with_2_and_write_nothing(
    keras_seq_command, shared, text_options, tmp_path
):
    (tmp_path / "file").touch()
    for arguments, words in (
        ([tmp_path / "out"], "no text to train on"),
        ([tmp_path / "out", "--source", f"{tmp_path}/*.no", "--target", "x"], "no file has a name"),
        ([tmp_path / "file", *text_options], "a file, expected a new or empty directory"),
        ([tmp_path, *text_options], "not empty and not a run"),
        ([tmp_path / "out", f"--set=data.prepared={shared}"], "`prepare` accepts only text"),
        (
            [
                tmp_path / "out",
                *text_options,
                "--set=tokenizer.kind=unigram",
                "--set=tokenizer.size=270",
            ],
            "too small for the char",
        ),
    ):
        outcome = keras_seq_command("prepare", *arguments)
        assert (outcome.code, outcome.out) == (2, b""), arguments
        assert words in outcome.error
        assert not (tmp_path / "out").exists()


def test_prepare_run_takes_tokenizer_settings_from_prepared_text(shared, tmp_path):
    settings = load_settings(preset="transformer-tiny", overrides={"data.prepared": str(shared)})
    run = prepare_run(settings, tmp_path / "run")
    assert run.settings.tokenizer == Run.open(shared).settings.tokenizer
    assert run.train_directory == shared / "data" / "train"
    assert run.valid_lines() == Run.open(shared).valid_lines()
    with pytest.raises(SettingsError, match="leave it out"):
        prepare_run(
            load_settings(base=settings.to_dict(), overrides={"tokenizer.size": 300}),
            tmp_path / "other",
        )
    with pytest.raises(InputError, match="no such run directory"):
        prepare_run(load_settings(overrides={"data.prepared": "absent"}), tmp_path / "third")
