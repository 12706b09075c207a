"""The site: Sphinx reads the pages of this folder, the notebooks and the docstrings.

`python docs/make_docs.py` builds it.
"""

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_site"))

import docstrings  # noqa: E402
import reference_pages  # noqa: E402

import keras_seq  # noqa: E402

project = "keras-seq"
author = "The keras-seq authors"
release = version = keras_seq.__version__
html_title = f"keras-seq {version}"
REPOSITORY = "https://github.com/keras-seq/keras-seq"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinxcontrib.mermaid",
]
exclude_patterns = ["_site", "_build"]
html_theme = "furo"
html_theme_options = {
    "source_repository": REPOSITORY,
    "source_branch": "main",
    "source_directory": "docs/",
}
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
highlight_language = "none"
# The pages load nothing from other hosts, except the drawings of mermaid.
html_extra_path = ["_site/extra"]

myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
# Notebooks are shown with the results that they contain; tests/test_notebooks.py runs them.
nb_execution_mode = "off"
myst_fence_as_directive = ["mermaid"]

napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_custom_sections = [
    ("Call arguments", "params_style"),
    ("Outputs", "params_style"),
    ("Reference", "notes_style"),
]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

# Links out of this folder lead to the repository.
_OUTSIDE = re.compile(r"\]\(\.\./([^)]+)\)")


def _link_to_repository(app, name, content):
    content[0] = _OUTSIDE.sub(rf"]({REPOSITORY}/blob/main/\1)", content[0])


def setup(app):
    app.connect("source-read", _link_to_repository)
    app.connect("builder-inited", lambda app: reference_pages.write(Path(app.srcdir)))
    # Before napoleon, which reads the sections.
    app.connect("autodoc-process-docstring", docstrings.convert, priority=100)
    app.connect("autodoc-skip-member", docstrings.skip)
    app.connect("autodoc-process-signature", docstrings.signature)
