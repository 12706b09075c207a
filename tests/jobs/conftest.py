"""Fixtures for jobs: processes that end with the test, and Ray workers at normal priority."""

import contextlib

import pytest
from job_process import JobProcess


@pytest.fixture(scope="session", autouse=True)
def workers_like_other_processes():
    """Resets Ray's niceness of 15, because two busy processes would starve its workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_worker_niceness", "0")
        yield


@pytest.fixture
def job_process():
    """Starts jobs, and ends all their processes when the test ends."""
    with contextlib.ExitStack() as started:
        yield lambda *arguments: started.enter_context(JobProcess(*arguments))
