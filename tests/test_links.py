"""Links of the README and the pages lead somewhere, and reach every page."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs").rglob("*.md"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY = PROJECT["urls"]["Source"]


def links(path):
    """Yields each link of a page and the file or folder that it names, or None for other sites."""
    for target in re.findall(r"\]\(([^)]+)\)", path.read_text(encoding="utf-8")):
        if not target.startswith("https://"):
            yield target, (path.parent / target).resolve()
        elif found := re.fullmatch(rf"{REPOSITORY}/(?:blob|raw|tree)/main/(.+)", target):
            yield target, ROOT / found[1]
        else:
            yield target, None


def test_every_link_leads_somewhere():
    for path in [*ROOT.glob("*.md"), *PAGES]:
        for target, file in links(path):
            assert file is None or file.exists(), f"{path}: {target}"


def test_links_of_the_readme_are_absolute_because_a_package_index_shows_it_too():
    for target, _ in links(README):
        assert target.startswith("https://"), target
    # On the index, a page about a picture instead of the picture itself would be shown.
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README.read_text(encoding="utf-8"))
    assert pictures and all(target.startswith(f"{REPOSITORY}/raw/main/") for target in pictures)


def test_every_page_is_reached_from_the_readme():
    reached, waiting = set(), [README]
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            waiting += [file for _, file in links(path) if file and file.suffix == ".md"]
    assert {path for path in PAGES if path.parent.name == "docs"} <= reached
