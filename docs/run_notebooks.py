"""Runs the notebooks and stores their results and pictures in them.

python docs/run_notebooks.py [NAME ...]
"""

import os
import re
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent / "notebooks"
# Progress lines of a training that are kept, at both ends.
SHOWN = 12
# Lines that TensorFlow writes about the machine.
LOG_LINE = re.compile(r"^(?:[IW]0000 |WARNING: All log messages before absl).*\n", re.MULTILINE)


def run(path, replace=lambda source: source):
    """Runs a notebook in an empty folder, except the cell that installs keras-seq.

    `replace` changes the source of a cell for this run. Returns the notebook with its results.
    """
    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    sources = [cell.source for cell in cells]
    for cell in cells:
        is_install = "install" in cell.metadata.get("tags", ())
        cell.source = "" if is_install else replace(cell.source)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(notebook, timeout=900, resources={"metadata": {"path": folder}})
        client.execute()
    for cell, source in zip(cells, sources, strict=True):
        cell.source = source
        cell.outputs = _tidy(cell.outputs)
        cell.metadata.pop("execution", None)
    return notebook


def _tidy(outputs):
    """Joins the lines of an output, and leaves out most of the progress."""
    kept = []
    for output in outputs:
        last = kept[-1] if kept else None
        if last and last.output_type == output.output_type == "stream" and last.name == output.name:
            last.text += output.text
        else:
            kept.append(output)
    for output in kept:
        if output.output_type == "stream":
            # A progress line is written again and again in place; only its last state is kept.
            output.text = re.sub(r"[^\n]*\r(?!\n)", "", output.text)
            output.text = LOG_LINE.sub("", output.text)
            lines = output.text.split("\n")
            if len(lines) > 2 * SHOWN + 1:
                lines = [*lines[:SHOWN], "...", *lines[-SHOWN:]]
            output.text = "\n".join(lines)
    return [output for output in kept if output.get("text") != ""]


if __name__ == "__main__":
    # Hides TensorFlow's log lines.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    for path in sorted(FOLDER.glob("*.ipynb")):
        if len(sys.argv) == 1 or path.stem in sys.argv[1:]:
            notebook = run(path)
            nbformat.write(notebook, path)
            print(path.name)
