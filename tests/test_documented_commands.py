"""Every `keras-seq` command of the README and the docs has options and settings that exist.

This takes a second. Running the commands of all pages takes minutes and is `weekly`.
"""

import importlib
import re
import shlex
import sys
from pathlib import Path

import pytest
import typer

from keras_seq.settings import FAMILIES, Settings

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# The script that writes the page of all commands.
sys.path.insert(0, str(ROOT / "docs"))
COMMANDS = dict(importlib.import_module("make_generated_pages").all_commands())
# The base of all errors of wrong options.
USAGE_ERROR = typer.BadParameter.__base__
# The settings of each section; a setting outside of a section has the key "".
FIELDS = Settings.model_fields
KEYS = {
    **{name: getattr(field.annotation, "model_fields", {""}) for name, field in FIELDS.items()},
    "model": {key for family in FAMILIES.values() for key in family.model_fields},
}


def commands_of(script):
    """Yields the arguments of each `keras-seq` in a shell script, without redirections."""
    script = script.replace("\\\n", " ").replace("\n", "\n;\n")
    lexer = shlex.shlex(script, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = []
    for token in [*lexer, ";"]:
        if set(token) - set("();<>|&"):
            words.append(token)
            continue
        if "keras-seq" in words:
            yield words[words.index("keras-seq") + 1 :]
        words = []


def parse(arguments):
    """Raises click's error if an option does not exist, lacks its value or has a wrong one."""
    size = 2 if " ".join(arguments[:2]) in COMMANDS else 1
    name = " ".join(arguments[:size])
    if name == "--version":
        return
    context = COMMANDS[name].make_context(name, arguments[size:])
    for setting in context.params.get("set_") or ():
        section, key, *_ = [*setting.partition("=")[0].split("."), ""]
        assert key in KEYS[section], setting


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_have_options_and_settings_that_exist(page):
    text = page.read_text(encoding="utf-8")
    for script in re.findall(r"^```bash\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE):
        for arguments in commands_of(script):
            parse(arguments)


@pytest.mark.parametrize(
    "script",
    [
        "keras-seq translate runs/a test.en --no-such-option",
        "cd x && keras-seq translate runs/a --beam-size > out",
        "keras-seq train runs/a --set training.no_such=1",
        "keras-seq train runs/a \\\n  --max-steps one",
    ],
)
def test_wrong_commands_would_be_found(script):
    (arguments,) = commands_of(script)
    with pytest.raises((USAGE_ERROR, AssertionError)):
        parse(arguments)
