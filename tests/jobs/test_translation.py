"""Translation of many files with killed processes, locally and on Ray.

The expected output is that of `keras-seq translate RUN < file`, byte by byte.
"""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from keras_seq.run import Run
from keras_seq.text.dates import date_pairs

# A chunk is 64 batches, which is 64 lines with one sentence per batch.
OPTIONS = ["--scores", "--batch-size", "1", "--beam-size", "1"]
SIZES = {"a.en": 64, "b.en": 130, "c.en": 200}
# Sizes for CTranslate2, which starts at once and is ten times as fast.
MANY = {"a.en": 64, "b.en": 500, "c.en": 3000}
QUICKLY = [*OPTIONS, "--engine", "ctranslate2"]


def write_texts(folder, sizes):
    """Writes files with some blank lines, and one empty file."""
    lines = [source for source, _ in date_pairs(sum(sizes.values()), seed=5)]
    for name, size in sizes.items():
        part, lines = lines[:size], lines[size:]
        part[size // 2] = ""
        (folder / name).write_text("".join(f"{line}\n" for line in part), encoding="utf-8")
    (folder / "empty.en").touch()
    return folder


def said_by_the_plain_command(texts, sizes, run, options):
    """Returns the output of the plain `translate` command for each file."""
    program = [sys.executable, "-m", "keras_seq", "translate", str(run), *options]
    text = "".join((texts / name).read_text("utf-8") for name in sizes)
    # One process for all files, because a line's translation does not depend on other lines.
    result = subprocess.run(program, input=text.encode(), capture_output=True, check=True)
    lines = result.stdout.split(b"\n")
    found = {"empty.en": b""}
    for name, size in sizes.items():
        found[name] = b"".join(line + b"\n" for line in lines[:size])
        lines = lines[size:]
    assert lines == [b""]
    return found


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return write_texts(tmp_path_factory.mktemp("texts"), SIZES)


@pytest.fixture(scope="module")
def expected(texts, tiny_run):
    return said_by_the_plain_command(texts, SIZES, tiny_run, OPTIONS)


@pytest.fixture(scope="module")
def many_texts(tmp_path_factory):
    pytest.importorskip("ctranslate2", reason="the extra ctranslate2 is not installed")
    return write_texts(tmp_path_factory.mktemp("many"), MANY)


@pytest.fixture(scope="module")
def expected_of_many(many_texts, tiny_run):
    return said_by_the_plain_command(many_texts, MANY, tiny_run, QUICKLY)


@pytest.fixture(params=["local", pytest.param("ray", marks=pytest.mark.weekly)])
def where(request):
    """Options for local workers and for Ray workers."""
    if request.param == "local":
        return []
    pytest.importorskip("ray", reason="the extra ray is not installed")
    return ["--runner", "ray"]


@pytest.fixture
def start(job_process, tiny_run):
    def call(texts, out, *options):
        files = ["--input", f"{texts}/*.en", "--output-dir", out, "--workers", "2"]
        return job_process(out, ".keras-seq/parts/*/0*", "translate", tiny_run, *files, *options)

    return call


def outputs(out):
    return {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}


def assert_alike(found, expected):
    """Asserts equal texts, and scores that are equal up to the rounding of CTranslate2."""
    tables = [[line.split(b"\t") for line in text.splitlines()] for text in (found, expected)]
    assert [line[1:] for line in tables[0]] == [line[1:] for line in tables[1]]
    for one, other in zip(*tables, strict=True):
        assert float(one[0] or 0) == pytest.approx(float(other[0] or 0), abs=1.5e-4)


@pytest.mark.process
def test_translated_files_are_identical_after_a_worker_is_killed(
    start, texts, expected, tmp_path, where
):
    job = start(texts, tmp_path / "out", *OPTIONS, *where)
    job.stop_one().kill()
    code, said = job.end()
    assert code == 0, said
    assert said.count("the worker ended") == 1
    assert f"translated 4 files with {sum(SIZES.values())} lines" in said
    assert outputs(tmp_path / "out") == expected


@pytest.mark.process
@pytest.mark.parametrize("where", ["local"], indirect=True)
@pytest.mark.weekly
def test_killed_translation_job_resumes_without_redoing_finished_files(
    start, many_texts, expected_of_many, tmp_path, where
):
    """All engines store partial results alike, so the test uses the fastest."""
    out = tmp_path / "out"
    job = start(many_texts, out, *QUICKLY, *where)

    def kept():
        """Chunk results of unfinished files; those of finished files are deleted."""
        return [path for path in job.kept() if not (out / path.parent.name).exists()]

    job.wait_for((out / "a.en").exists)
    # Stop a worker so that the job cannot finish.
    job.stop_one()
    job.wait_for(lambda: len(kept()) >= 2)
    job.kill()
    done = {path: path.stat().st_mtime_ns for path in out.glob("*.en")}
    assert {"a.en", "empty.en"} <= {path.name for path in done}
    # Every finished file is complete.
    for name, content in outputs(out).items():
        if not name.startswith(".tmp-"):
            assert_alike(content, expected_of_many[name])
    before = len(kept())
    job = start(many_texts, out, *QUICKLY, *where)
    code, said = job.end()
    assert code == 0, said
    assert f"{len(done)} of 4 files, and {before:,} chunks are done already" in said
    assert {path: path.stat().st_mtime_ns for path in done} == done
    found = outputs(out)
    assert found.keys() == expected_of_many.keys()
    for name, content in found.items():
        assert_alike(content, expected_of_many[name])
    assert job.kept() == []


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT])
def test_a_signal_ends_a_job_and_its_workers(start, tmp_path, number, request):
    # Shells start background jobs with SIGINT ignored, and child processes inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    pytest.importorskip("ctranslate2", reason="the extra ctranslate2 is not installed")
    # Too many lines to translate before this process continues.
    (tmp_path / "long.en").write_text("3 May 2001\n" * 100_000)
    job = start(tmp_path, tmp_path / "out", *QUICKLY)
    job.wait_for(job.kept)
    workers = job.workers()
    job.process.send_signal(number)
    code, said = job.end()
    assert code == 128 + number
    assert "Traceback" not in said
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert workers and not alive


@pytest.mark.process
@pytest.mark.weekly
def test_translated_files_are_identical_after_a_ray_node_is_lost(
    start, texts, expected, tmp_path, monkeypatch
):
    """Removes one of two nodes of a cluster, together with its worker."""
    pytest.importorskip("ray", reason="the extra ray is not installed")
    from keras_seq.jobs import require_ray

    require_ray()
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    try:
        second = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        monkeypatch.setenv("RAY_ADDRESS", cluster.address)
        job = start(texts, tmp_path / "out", *OPTIONS, "--runner", "ray")
        job.wait_for(lambda: len(job.kept()) >= 2)
        cluster.remove_node(second, allow_graceful=False)
        code, said = job.end()
    finally:
        cluster.shutdown()
    assert code == 0, said
    assert "another one repeats them" in said
    assert outputs(tmp_path / "out") == expected


# In this process, with CTranslate2, whose workers start at once


@pytest.fixture
def translate(keras_seq_command, tiny_run, tmp_path):
    pytest.importorskip("ctranslate2", reason="the extra ctranslate2 is not installed")

    def call(*arguments, run=tiny_run, output_dir=tmp_path / "out"):
        return keras_seq_command(
            "translate",
            run,
            *("--engine", "ctranslate2", "--beam-size", "1", "--batch-size", "1"),
            *("--output-dir", output_dir, *arguments),
        )

    return call


def test_output_files_equal_translate_output_for_unusual_and_gzip_input(
    translate, keras_seq_command, tiny_run, texts, tmp_path
):
    nasty = "x\r\n\n \ny\u2028z\n<s> \x1c".encode()
    (tmp_path / "nasty").write_bytes(b"\xef\xbb\xbf" + nasty + b"\xff")
    with gzip.open(tmp_path / "packed.en.gz", "wb") as stream:
        stream.write((texts / "a.en").read_bytes())
    names = [texts / "c.en", tmp_path / "nasty", tmp_path / "packed.en.gz"]
    outcome = translate(*(f"--input={name}" for name in names))
    assert outcome.code == 0, outcome.err
    assert sorted(outputs(tmp_path / "out")) == ["c.en", "nasty", "packed.en"]
    engine = ["--engine", "ctranslate2", "--beam-size", "1", "--batch-size", "1"]
    for name in names:
        plain = keras_seq_command("translate", tiny_run, name, *engine)
        output = tmp_path / "out" / name.name.removesuffix(".gz")
        assert output.read_bytes() == plain.out
    assert "nasty:1: line ends are CRLF" in outcome.err
    assert outcome.err.count("invalid UTF-8") == 1


@pytest.mark.slow
@pytest.mark.weekly
def test_n_best_output_of_a_file_equals_plain_translate_output(
    translate, keras_seq_command, texts, tiny_run, tmp_path
):
    options = ["--beam-size", "2", "--n-best", "2"]
    assert translate("--input", texts / "b.en", *options).code == 0
    plain = keras_seq_command(
        *("translate", tiny_run, texts / "b.en", "--engine", "ctranslate2", "--batch-size", "1"),
        *options,
    )
    assert (tmp_path / "out" / "b.en").read_bytes() == plain.out


def test_finished_files_are_not_translated_again(translate, texts, tmp_path):
    first = translate("--input", texts / "a.en")
    assert first.code == 0
    written = (tmp_path / "out" / "a.en").stat().st_mtime_ns
    again = translate("--input", texts / "a.en", "--input", texts / "empty.en")
    assert again.code == 0
    assert "1 of 2 files are done already" in again.err
    assert (tmp_path / "out" / "a.en").stat().st_mtime_ns == written
    # Lowering the batch size after running out of memory must not restart the job.
    assert (
        "1 of 1 files are done already"
        in translate("--input", texts / "a.en", "--batch-size=2").err
    )
    (tmp_path / "out" / "a.en").unlink()
    assert translate("--input", texts / "a.en").code == 0
    assert (tmp_path / "out" / "a.en").exists()


@pytest.mark.slow
@pytest.mark.weekly
def test_changed_input_is_translated_again(translate, texts, tmp_path):
    text = tmp_path / "text"
    shutil.copy(texts / "b.en", text)
    assert translate("--input", text).code == 0
    whole = (tmp_path / "out" / "text").read_bytes()
    lines = text.read_bytes().split(b"\n")
    text.write_bytes(b"\n".join([b"5 mai 1999", *lines[1:]]))
    outcome = translate("--input", text)
    assert outcome.code == 0
    assert "changed since it was translated" in outcome.err
    assert (tmp_path / "out" / "text").read_bytes().split(b"\n")[1:] == whole.split(b"\n")[1:]


@pytest.mark.slow
@pytest.mark.weekly
def test_job_with_other_settings_is_rejected_without_overwrite(
    translate, texts, tiny_run, tmp_path
):
    text = ("--input", texts / "a.en")
    assert translate(*text).code == 0
    out = tmp_path / "out"
    before = outputs(out)
    run = Run.open(shutil.copytree(tiny_run, tmp_path / "run"))
    vectors = (
        run.path / "checkpoints" / f"step-{run.checkpoints.best_step:08d}" / "weights.safetensors"
    )
    other = min(set(run.checkpoints.steps) - {run.checkpoints.best_step}, default=None)
    for arguments, options, words in (
        (["--alpha", "0.5"], {}, "search.alpha 1.0 -> 0.5"),
        (["--scores"], {}, "scores False -> True"),
        (["--quantize", "int8"], {}, "quantize float32 -> int8"),
    ):
        outcome = translate(*text, *arguments, **options)
        assert outcome.code == 2
        said = f"{out}: started with different settings: {words}: use the same settings"
        assert said in outcome.error
        assert outputs(out) == before
    assert vectors.exists() and other is not None
    run.mark_best(other)
    outcome = translate(*text, run=run.path)
    assert outcome.code == 2
    assert "started with different settings: weights.safetensors sha256:" in outcome.error
    outcome = translate(*text, "--scores", "--overwrite")
    assert outcome.code == 0
    assert outputs(out).keys() == before.keys()
    assert outputs(out) != before


def test_foreign_or_edited_output_files_are_kept_without_overwrite(translate, texts, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.en").write_text("mine\n")
    (out / "other").write_text("mine\n")
    outcome = translate("--input", texts / "a.en")
    assert outcome.code == 2
    assert "exists already and belongs to no job here" in outcome.error
    assert (out / "a.en").read_text() == "mine\n"
    assert translate("--input", texts / "a.en", "--overwrite").code == 0
    assert (out / "a.en").read_text() != "mine\n"
    assert (out / "other").read_text() == "mine\n"
    with open(out / "a.en", "a") as stream:
        stream.write("corrected by hand\n")
    outcome = translate("--input", texts / "a.en")
    assert outcome.code == 2
    assert "changed since it was written: delete it" in outcome.error
    (out / "a.en").rename(out / "kept")
    (out / "a.en").mkdir()
    outcome = translate("--input", texts / "a.en", "--overwrite")
    assert outcome.code == 2
    assert "a directory, expected a file or nothing" in outcome.error
    (out / "a.en").rmdir()
    (out / "kept").rename(out / "a.en")
    (out / ".keras-seq" / "job.json").write_text("[")
    outcome = translate("--input", texts / "a.en")
    assert outcome.code == 2
    assert "not the record of a job" in outcome.error


def test_invalid_translation_jobs_exit_with_2_and_write_nothing(translate, texts, tmp_path):
    (tmp_path / "bad.gz").write_bytes(b"text")
    (tmp_path / "other").mkdir()
    shutil.copy(texts / "a.en", tmp_path / "other" / "a.en")
    (tmp_path / "file").touch()
    a, elsewhere = texts / "a.en", tmp_path / "other" / "a.en"
    for arguments, options, words in (
        (["--input", f"{tmp_path}/*.fr"], {}, "no file has a name like this"),
        (["--input", tmp_path / "absent"], {}, "absent: no such file"),
        (["--input", tmp_path / "bad.gz"], {}, "not a valid gzip file"),
        (["--input", "-"], {}, "read more than once: name a regular file"),
        (["--input", a, "--input", elsewhere], {}, f"would have the same output as {a}"),
        (["--input", elsewhere], {"output_dir": tmp_path / "other"}, "would replace it"),
        (["--input", a], {"output_dir": tmp_path / "file"}, "a file, expected a directory"),
        (["--input", a, "--workers", "0"], {}, "--workers"),
        (["--input", a, "--output", "x"], {}, "needs --output-dir, and no other text"),
        ([], {}, "needs --input"),
    ):
        outcome = translate(*arguments, **options)
        assert (outcome.code, outcome.out) == (2, b""), arguments
        assert words in outcome.error
        assert not (tmp_path / "out").exists()
    assert elsewhere.read_bytes() == a.read_bytes()


def test_missing_ray_error_names_the_pip_extra(
    keras_seq_command, tiny_run, texts, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "ray", None)
    job = ["--input", texts / "a.en", "--output-dir", tmp_path / "out", "--runner", "ray"]
    outcome = keras_seq_command("translate", tiny_run, *job)
    assert outcome.code == 2
    assert outcome.error.endswith("python -m pip install 'keras-seq[ray]'")
    assert not (tmp_path / "out").exists()


def test_unreachable_ray_cluster_is_reported(
    keras_seq_command, tiny_run, texts, tmp_path, monkeypatch
):
    pytest.importorskip("ray", reason="the extra ray is not installed")
    job = ["--input", texts / "a.en", "--output-dir", tmp_path / "out", "--runner", "ray"]
    for address in ("nonsense", "127.0.0.1:1"):
        monkeypatch.setenv("RAY_ADDRESS", address)
        outcome = keras_seq_command("translate", tiny_run, *job)
        assert outcome.code == 2
        assert "no Ray cluster is available" in outcome.error


def test_second_job_in_the_same_directory_is_rejected(translate, texts, tmp_path):
    from keras_seq.storage import DirectoryLock

    job = tmp_path / "out" / ".keras-seq"
    job.mkdir(parents=True)
    lock = DirectoryLock(job)
    outcome = translate("--input", texts / "a.en")
    lock.release()
    assert outcome.code == 2
    assert "another job is at work there" in outcome.error


def test_input_changed_during_the_job_raises_input_error(tiny_run, texts, tmp_path):
    from keras_seq.jobs import run_locally, translate_files
    from keras_seq.text import InputError

    text = tmp_path / "text"
    for change in ((lambda lines: lines[:70]), (lambda lines: [*lines[:70], "new", *lines[71:]])):
        shutil.copy(texts / "b.en", text)

        def runner(task, chunks, change=change, **options):
            # Change the text after the scan of all files, before the first chunk is read.
            text.write_text("\n".join(change(text.read_text("utf-8").split("\n"))), "utf-8")
            return run_locally(task, chunks, **options)

        with pytest.raises(InputError, match=r"text.*while the job was running"):
            translate_files(
                tiny_run,
                str(text),
                tmp_path / "out",
                search={"batch_size": 1, "beam_size": 1},
                engine="ctranslate2",
                runner=runner,
            )
        assert not (tmp_path / "out" / "text").exists()


def test_job_record_lists_the_search_and_engine_settings(translate, texts, tmp_path):
    assert translate("--input", texts / "a.en").code == 0
    record = json.loads((tmp_path / "out" / ".keras-seq" / "job.json").read_text())
    assert record["search.beam_size"] == 1
    assert record["engine"] == "ctranslate2"
    # The job's copy of the run is deleted.
    assert sorted(os.listdir(tmp_path / "out" / ".keras-seq")) == [
        ".lock",
        "done",
        "job.json",
        "parts",
    ]
    assert Path(tmp_path, "out", ".keras-seq", "parts").is_dir()
