"""Builds the site.

    python -m pip install '.[docs]' && python docs/make_docs.py

Writes HTML to build/site, or to `--output`. A warning is an error: a link to a page that does not
exist, a page that no menu names, a docstring that cannot be read. `--links` checks the links to
other sites instead, which needs the network.
"""

import argparse
import os
import sys
from pathlib import Path

# Hides TensorFlow's log lines.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from sphinx.cmd.build import build_main

DOCS = Path(__file__).resolve().parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=DOCS.parent / "build" / "site")
    parser.add_argument("--links", action="store_true", help="check the links to other sites")
    options = parser.parse_args()
    builder = "linkcheck" if options.links else "html"
    arguments = ["--fail-on-warning", "--keep-going", "--quiet", "--builder", builder]
    failed = build_main([*arguments, str(DOCS), str(options.output)])
    if not failed:
        print(options.output / ("output.txt" if options.links else "index.html"))
    return failed


if __name__ == "__main__":
    sys.exit(main())
