"""A training while the clock of the system jumps."""

import itertools
import json
import time

import pytest
from training.toy import quiet_train, toy_settings

# Seconds; a day back, ten years ahead, back again.
JUMPS = (-86_400.0, 3.2e8, 0.0)


@pytest.mark.slow
@pytest.mark.weekly
def test_clock_that_jumps_changes_neither_limits_nor_durations(tmp_path, monkeypatch):
    begin, calls = time.time(), itertools.cycle(JUMPS)
    monkeypatch.setattr(time, "time", lambda: begin + next(calls))
    settings = toy_settings(
        tmp_path,
        training__max_steps=6,
        training__max_minutes=5,
        training__checkpoint_every=2,
        training__validate_every=2,
    )
    quiet_train(settings, tmp_path / "run")
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    validations = [found for found in map(json.loads, lines) if "minutes" in found]
    assert [found["step"] for found in validations] == [2, 4, 6]
    minutes = [found["minutes"] for found in validations]
    assert 0 <= minutes[0] <= minutes[1] <= minutes[2] < 5, minutes
