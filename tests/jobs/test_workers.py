"""Distribution of chunks to workers, locally and on a Ray cluster of this machine."""

import logging
import os
from pathlib import Path

import psutil
import pytest
from tasks_for_workers import Shout

from keras_seq.jobs import JobError, run_locally, run_on_ray
from keras_seq.jobs.chunks import Chunk
from keras_seq.jobs.local_workers import default_workers
from keras_seq.jobs.ray_workers import split_cores
from keras_seq.text import InputError

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def ray_cluster():
    """A Ray cluster with two CPUs whose workers can import the test tasks."""
    pytest.importorskip("ray", reason="the extra ray is not installed")
    from keras_seq.jobs import require_ray

    ray = require_ray()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(TESTS), prepend=os.pathsep)
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
        yield
        ray.shutdown()


@pytest.fixture(params=["local", "ray"])
def runner(request, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(TESTS), prepend=os.pathsep)
    if request.param == "local":
        return run_locally
    request.getfixturevalue("ray_cluster")
    return run_on_ray


@pytest.fixture
def run_lines(runner, tmp_path):
    """Runs the task with one chunk per line; returns ordered results, and the notices."""

    def run(lines, workers=2):
        chunks = [Chunk(0, n, n + 1, f"text line {n + 1}", line) for n, line in enumerate(lines)]
        notices = []
        found = {}
        for chunk, result in runner(
            Shout(str(tmp_path)), iter(chunks), workers=workers, notice=notices.append
        ):
            assert chunk == chunks[chunk.number]
            assert chunk.number not in found
            found[chunk.number] = result
        return [found[n] for n in range(len(lines))], notices

    return run


def starts(tmp_path):
    return [path.read_text() for path in tmp_path.glob("start-*")]


@pytest.mark.process
def test_every_chunk_is_done_once_by_workers_that_start_once(run_lines, runner, tmp_path):
    lines = [b"word %d" % n for n in range(40)]
    results, notices = run_lines(lines)
    assert [result.body for result in results] == [line.upper() for line in lines]
    assert notices == []
    assert len(starts(tmp_path)) <= 2
    assert {words.split()[1] for words in starts(tmp_path)} == {str(runner is run_on_ray)}
    done = [path.read_text().split() for path in tmp_path.glob("did-*")]
    assert [len(pids) for pids in done] == [1] * len(lines)
    assert str(os.getpid()) not in {pid for pids in done for pid in pids}


@pytest.mark.process
def test_two_slow_chunks_run_on_two_workers(run_lines, tmp_path):
    run_lines([b"sleep 1", b"sleep 1"])
    pids = {Path(tmp_path, f"did-{n}").read_text() for n in range(2)}
    assert len(pids) == 2


def test_no_worker_starts_without_chunks(run_lines, tmp_path):
    assert run_lines([]) == ([], [])
    assert starts(tmp_path) == []


def test_worker_notices_are_returned_and_its_prints_are_suppressed(run_lines, capfd):
    results, notices = run_lines([b"say", b"print", b"c"])
    assert [result.notices for result in results] == [("said",), (), ()]
    assert notices == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.process
def test_chunks_of_a_killed_worker_are_run_again(run_lines, capfd):
    lines = [b"a", b"die 1", b"b", b"die 2", b"c", b"d"]
    results, notices = run_lines(lines)
    assert [result.body for result in results] == [line.upper() for line in lines]
    assert sorted(notice.split(":")[0] for notice in notices) == [
        "text line 2",
        "text line 4",
        "text line 4",
    ]
    assert all("another one repeats them" in notice for notice in notices)
    assert capfd.readouterr() == ("", "")


@pytest.mark.process
@pytest.mark.parametrize("line", [b"die 9", b"exit"])
def test_chunk_that_kills_every_worker_is_named_in_the_error(run_lines, line):
    with pytest.raises(JobError, match=r"^text line 2: the worker ended 3 times"):
        run_lines([b"a", line, b"b"])


@pytest.mark.process
@pytest.mark.parametrize(
    ("line", "kind", "words"),
    [
        (b"wrong", JobError, "text line 1: ValueError: no such word"),
        (b"input", InputError, "the file: is wrong"),
        (b"memory", JobError, "text line 1: a worker ran out of memory: give fewer --workers"),
    ],
)
def test_worker_error_is_raised_with_the_chunk_or_file_named(run_lines, line, kind, words):
    with pytest.raises(kind) as caught:
        run_lines([line])
    assert str(caught.value).startswith(words)


def test_input_error_while_reading_chunks_ends_the_job(runner, tmp_path):
    def chunks():
        yield Chunk(0, 0, 1, "text line 1", b"a")
        raise InputError("text: cannot be read any more")

    with pytest.raises(InputError, match="any more"):
        for _ in runner(Shout(str(tmp_path)), chunks(), workers=1, notice=print):
            pass


def test_workers_end_when_the_result_iterator_is_closed(runner, tmp_path):
    lines = [b"a", b"sleep 60", b"sleep 60"]
    chunks = [Chunk(0, n, n + 1, "text", line) for n, line in enumerate(lines)]
    results = runner(Shout(str(tmp_path)), iter(chunks), workers=2, notice=print)
    assert next(results)[1].body == b"A"
    pids = [int(path.name.split("-")[1]) for path in tmp_path.glob("start-*")]
    results.close()
    processes = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    _, alive = psutil.wait_procs(processes, timeout=10)
    assert pids and not alive


def test_default_workers_and_core_shares_fit_the_machines():
    assert [default_workers(cores) for cores in (1, 4, 7, 16)] == [1, 1, 1, 4]
    # Cores of each machine, requested workers, and expected (workers, cores per worker).
    for nodes, workers, expected in (
        ([8], 2, (2, 4)),
        ([8], None, (2, 4)),
        ([4, 12], 2, (2, 6)),
        ([4, 12], 4, (4, 4)),
        ([3, 3], 2, (2, 3)),
        ([5, 5], 3, (3, 2)),
        ([1, 1], 3, (2, 1)),
        ([1], None, (1, 1)),
    ):
        found, cores = split_cores(nodes, workers)
        assert (found, cores) == expected
        assert sum(node // cores for node in nodes) >= found
