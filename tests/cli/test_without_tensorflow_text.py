"""The commands without tensorflow-text, which has no package for Windows."""

import subprocess
import sys

import pytest

# Runs a command line in a process that does not find tensorflow-text.
WITHOUT = """
import importlib.machinery as machinery, sys
class Finder:
    find_distributions = machinery.PathFinder.find_distributions
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "tensorflow_text":
            return None
        return machinery.PathFinder.find_spec(name, path, target)
sys.meta_path[:] = [Finder if one is machinery.PathFinder else one for one in sys.meta_path]
from keras_seq_cli.main import main
sys.exit(main(sys.argv[1:]))
"""


MESSAGE = "keras-seq: tensorflow-text is needed: python -m pip install tensorflow-text\n"

pytestmark = pytest.mark.process


def run(*arguments):
    command = [sys.executable, "-c", WITHOUT, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_export_names_the_missing_package_and_writes_nothing(tiny_run, tmp_path):
    ended = run("export", tiny_run, tmp_path / "served")
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", MESSAGE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["translate"], ["serve", "--port", "0"]])
def test_commands_that_load_an_export_name_the_missing_package(tiny_export, command):
    name, *options = command
    ended = run(name, tiny_export, *options, *(["hi"] if name == "translate" else []))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.endswith(MESSAGE) and "Traceback" not in ended.stderr
