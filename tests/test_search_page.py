"""docs/decoding.md names a test for each law and lists every option, and its commands run."""

import os
import re
import shlex
from pathlib import Path

import pytest

from keras_seq.process import threads
from keras_seq.settings import SearchSettings

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "decoding.md").read_text(encoding="utf-8")
ON_JAX = (
    "JAX_COMPILATION_CACHE_DIR=compiled KERAS_BACKEND=jax"
    " keras-seq translate runs/ende --stream < test.en"
)
LINES = ["1.2.2003", "", "4 March 1999"]


def rows(head):
    """Yields the rows of the table with the given header, as dictionaries."""
    table = TEXT[TEXT.index(f"| {' | '.join(head)} |") :].split("\n\n")[0].strip()
    for line in table.split("\n")[2:]:
        yield dict(zip(head, (cell.strip() for cell in line.strip("|").split(" | ")), strict=True))


def test_every_law_has_a_test():
    found = list(rows(["law", "test", "how"]))
    assert len(found) > 20
    assert [row["law"] for row in found if "::" not in row["test"]] == []


def test_every_option_has_a_row_with_its_default():
    found = {
        row["option"].strip("`"): row["default"]
        for row in rows(["option", "default", "what it does"])
    }
    expected = {
        name: "none" if field.default is None else str(field.default)
        for name, field in SearchSettings.model_fields.items()
    }
    assert found == expected


@pytest.fixture
def folder(tiny_run, tmp_path, monkeypatch):
    """The files that the page names; both runs share a vocabulary, as an ensemble requires."""
    (tmp_path / "runs").mkdir()
    for name in ("ende", "other"):
        (tmp_path / "runs" / name).symlink_to(tiny_run)
    (tmp_path / "test.en").write_text("".join(f"{line}\n" for line in LINES))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.weekly
def test_every_command_of_the_search_page_runs(folder, keras_seq_command):
    blocks = re.findall(r"^```bash\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.strip().split("\n") if line != ON_JAX]
    commands = [shlex.split(line) for line in lines]
    assert len(commands) >= 8
    used = {part for command in commands for part in command if part.startswith("--")}
    for name in SearchSettings.model_fields:
        option = f"--{name.replace('_', '-')}"
        # The page has no command with `--batch-size`.
        assert {option, option.removesuffix("-size")} & used or name == "batch_size", name
    for program, *arguments in commands:
        assert program == "keras-seq"
        # Other tests verify that an export gives the same results as its run.
        more = ["--verify=0"] if arguments[0] == "export" else []
        outcome = keras_seq_command(*arguments, *more)
        assert outcome.code == 0, f"{shlex.join(arguments)}\n{outcome.err}"
        if arguments[0] == "translate":
            count = (
                int(arguments[arguments.index("--n-best") + 1]) if "--n-best" in arguments else 1
            )
            assert len(outcome.lines) == count * (len(LINES) - 1) + 1


@pytest.mark.weekly
def test_a_stream_on_jax_is_translated_as_on_tensorflow(folder, keras_seq_process):
    pytest.importorskip("jax")
    assert f"\n{ON_JAX}\n" in TEXT
    *settings, _, translate, run, stream, _, file = ON_JAX.split()
    environment = dict(setting.split("=") for setting in settings)
    stdin = (folder / file).read_bytes()
    on_jax = keras_seq_process(translate, run, stream, stdin=stdin, **environment)
    assert on_jax.code == 0, on_jax.err
    assert on_jax.out == keras_seq_process(translate, run, stream, stdin=stdin).out
    assert len(on_jax.lines) == len(LINES) and any(on_jax.lines)


def test_search_page_python_sets_the_thread_variables(monkeypatch):
    for name in (threads._INTRA_OP, threads._INTER_OP):
        monkeypatch.setenv(name, "")
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(block, {})
    assert os.environ[threads._INTRA_OP] == "1"
    assert threads.num_search_threads() == os.cpu_count()
