"""Builds the API reference out of the docstrings.

    python docs/build_reference.py [FOLDER]

Writes HTML to build/reference, or to FOLDER. The pages ask for nothing from the network.
Anything that pdoc warns of is an error.
"""

import importlib
import os
import re
import sys
import warnings
from pathlib import Path

# pdoc forbids processes during imports, and TensorFlow's starts one: `platform` asks `uname`.
os.environ["PDOC_ALLOW_EXEC"] = "1"

import pdoc

# The packages whose names are public, without the files in them.
NAMES = "callbacks estimators layers losses metrics models schedules search training".split()
MODULES = [f"keras_seq.{name}" for name in NAMES]
MODULES += [r"!keras_seq\.\w+\."]
TEMPLATES = Path(__file__).parent / "reference"


def list_names(docstring: str) -> str:
    """Sections of names as lists, of which pdoc knows `Args` and `Raises` alone."""
    return re.sub(
        r"^(Call arguments|Returns|Attributes):\n((?:[ \t]*\n|[ \t]+.+(?:\n|$))+)",
        _list,
        docstring,
        flags=re.MULTILINE,
    )


def _list(section: re.Match) -> str:
    name, text = section.groups()
    indented = re.match(r"( +)\w[\w, ]*: ", text)
    if not indented:
        return section.group()
    items = re.sub(rf"^{indented[1]}(\w[\w, ]*:) ", r"- **\1** ", text, flags=re.MULTILINE)
    return f"###### {name}:\n{items}\n"


def build(folder: Path) -> None:
    pdoc.render.configure(
        docformat="google",
        template_directory=TEMPLATES,
        show_source=False,
        footer_text="keras-seq",
    )
    pdoc.render.env.filters["list_names"] = list_names
    for name in NAMES:
        # pdoc finds only names that are in the namespace of a package, not those that load lazily.
        package = importlib.import_module(f"keras_seq.{name}")
        vars(package).update({public: getattr(package, public) for public in package.__all__})
    with warnings.catch_warnings():
        warnings.filterwarnings("error", module="pdoc")
        pdoc.pdoc(*MODULES, output_directory=folder)


if __name__ == "__main__":
    build(Path(sys.argv[1] if len(sys.argv) > 1 else "build/reference"))
