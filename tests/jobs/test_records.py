"""Job records: stored results are reused only if they were made with the same record."""

import re
from pathlib import Path

import pytest

from keras_seq.jobs.stored_results import check_same_job, read_record
from keras_seq.text import InputError

RECORD = {"search.beam_size": 5, "weights": "sha256:0123456789abcdef", "scores": False}


@pytest.mark.parametrize(
    ("now", "difference"),
    [
        (RECORD | {"search.beam_size": 4}, "search.beam_size 5 -> 4"),
        (RECORD | {"weights": "sha256:fedcba98"}, "weights sha256:01234567 -> sha256:fedcba98"),
        (RECORD | {"search.new": 1}, "search.new none -> 1"),
        ({"search.beam_size": 5, "scores": False}, "weights sha256:01234567 -> none"),
    ],
    ids=["other value", "other file", "new key", "missing key"],
)
def test_job_with_another_record_is_refused_with_the_difference(now, difference):
    check_same_job(RECORD, dict(RECORD), Path("out"))
    with pytest.raises(InputError, match=re.escape(difference)):
        check_same_job(RECORD, now, Path("out"))


def test_at_most_four_differences_are_listed_and_the_others_counted():
    now = {f"key{number}": number for number in range(6)}
    with pytest.raises(InputError, match=r"key3 none -> 3 and 2 more: "):
        check_same_job({}, now, Path("out"))


@pytest.mark.parametrize("content", ["{", "[]", "3", "[" * 200_000])
def test_file_that_is_not_a_record_is_refused(tmp_path, content):
    path = tmp_path / "job.json"
    assert read_record(path) is None
    path.write_text(content)
    with pytest.raises(InputError, match="not the record of a job: delete it, or use --overwrite"):
        read_record(path)
