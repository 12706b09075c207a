"""A stand-in for the Hugging Face Hub."""

import subprocess
import sys
from pathlib import Path

import pytest

SERVER = Path(__file__).resolve().parents[1] / "hub_server.py"


@pytest.fixture(scope="module")
def hub():
    """The address of a stand-in for the Hub."""
    command = [sys.executable, SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
