"""Builds a release, tries it in a clean virtual environment, and tags it.

    python tools/release.py [--dry-run]

The version is `keras_seq.__version__`. The script stops at the first check that fails. It leaves
the source distribution and the wheel in dist/, and next to them what it was tried with: the
dependencies with their hashes, their licenses, the audit of their vulnerabilities, and a software
bill of materials (SBOM). It makes an annotated tag, and uploads nothing. `--dry-run` makes no tag,
and accepts a version that CHANGELOG.md marks as unreleased. The extra `release` has what the script
needs.
"""

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
# A training that is too short to learn anything, which shows that all dependencies work.
DEMO = ("demo", "demo", "--set", "training.max_steps=20", "--set", "training.validate_every=20")
# Licenses under which a dependency would bind the users of this library.
REFUSED_LICENSES = re.compile(r"^(GNU General Public|GNU Affero|A?GPL)")
LICENSES = (sys.executable, "-m", "piplicenses", "--format=csv", "--from=mixed")


def run(*command: object, **options: object) -> str:
    """Runs a command; returns its output, or ends the script with the output if it fails."""
    words = list(map(str, command))
    print("$", *(word.removeprefix(f"{ROOT}{os.sep}") for word in words), flush=True)
    done = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout}\nrelease: the command above failed")
    return done.stdout


def version() -> str:
    text = (ROOT / "keras_seq" / "__init__.py").read_text(encoding="utf-8")
    return re.search('^__version__ = "(.+)"$', text, re.MULTILINE)[1]


def check_sources(number: str, dry_run: bool) -> None:
    """Ends the script if the checkout is not ready for a release of the version."""
    if changed := run("git", "status", "--porcelain", cwd=ROOT):
        raise SystemExit(f"{changed}\nrelease: files are not committed: commit or remove them")
    if run("git", "tag", "--list", f"v{number}", cwd=ROOT):
        raise SystemExit(f"release: the tag v{number} exists: raise keras_seq.__version__")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = re.search(rf"^## {re.escape(number)}(?: .*)?$", changelog, re.MULTILINE)
    if heading is None:
        raise SystemExit(f"release: CHANGELOG.md has no heading '## {number}': add one")
    if "unreleased" in heading[0].lower():
        message = f"CHANGELOG.md: '{heading[0]}': write the date instead of 'Unreleased'"
        if not dry_run:
            raise SystemExit(f"release: {message}")
        print(f"before the release, {message}")


def build(number: str, temporary: Path) -> tuple[Path, Path]:
    """Builds both distributions from the last commit, checks them, and returns their paths."""
    # A clone has no files that git ignores, such as those of an earlier build.
    run("git", "clone", "--quiet", ROOT, temporary / "clone")
    run(sys.executable, "-m", "build", "--outdir", DIST, temporary / "clone")
    source = DIST / f"keras_seq-{number}.tar.gz"
    wheel = DIST / f"keras_seq-{number}-py3-none-any.whl"
    print(run(sys.executable, "-m", "twine", "--no-color", "check", "--strict", source, wheel))
    return source, wheel


def try_wheel(wheel: Path, number: str, temporary: Path) -> None:
    """Installs the wheel in a clean virtual environment and trains the demo there."""
    venv.create(temporary / "environment", with_pip=True)
    programs = temporary / "environment" / ("Scripts" if os.name == "nt" else "bin")
    names = ("PYTHONPATH", "KERAS_BACKEND")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    run(programs / "python", "-m", "pip", "install", "--quiet", wheel, env=environment)
    printed = run(programs / "keras-seq", "--version", env=environment, cwd=temporary)
    print(printed)
    if printed.strip() != f"keras-seq {number}":
        raise SystemExit(f"release: the wheel printed another version than {number}")
    print(run(programs / "keras-seq", *DEMO, env=environment, cwd=temporary))
    describe_dependencies(programs / "python", number)


def describe_dependencies(python: Path, number: str) -> None:
    """Checks the dependencies in the environment of `python`, and lists them in dist/.

    Ends the script if one has a known vulnerability, if nothing is known about one, or if one has a
    license that binds users.
    """
    where = 'import sysconfig; print(sysconfig.get_path("purelib"))'
    packages = run(python, "-c", where).strip()
    name = f"keras_seq-{number}"
    audit = DIST / f"{name}-audit.json"
    audit.unlink(missing_ok=True)
    options = ("--progress-spinner=off", "--format=json", "--output", audit)
    print(run(sys.executable, "-m", "pip_audit", *options, "--path", packages))
    # pip-audit succeeds with packages that it skips.
    if unknown := unaudited(json.loads(audit.read_text(encoding="utf-8"))):
        raise SystemExit(
            f"release: packages without an audit: {', '.join(unknown)}: use a network that reaches "
            "pypi.org itself, because a mirror may lack the list of vulnerabilities"
        )
    # The tools name this script's environment by default.
    licenses = DIST / f"{name}-licenses.csv"
    licenses.write_text(run(*LICENSES, f"--python={python}"), encoding="utf-8")
    if refused := refused_licenses(licenses.read_text(encoding="utf-8")):
        raise SystemExit(f"release: licenses that bind users: {', '.join(refused)}")
    bill = DIST / f"{name}-sbom.json"
    run(sys.executable, "-m", "cyclonedx_py", "environment", python, "--output-file", bill)
    lock = DIST / f"{name}-lock.txt"
    options = ("--generate-hashes", "--allow-unsafe", "--no-header", "--no-emit-index-url")
    frozen = [line for line in run(python, "-m", "pip", "freeze").split("\n") if "==" in line]
    with tempfile.TemporaryDirectory() as folder:
        exact = Path(folder) / "exact.in"
        exact.write_text("\n".join(frozen), encoding="utf-8")
        compiler = (sys.executable, "-m", "piptools", "compile", "--quiet", "--no-annotate")
        run(*compiler, *options, "--no-emit-find-links", "--output-file", lock, exact)
    print(f"{len(frozen)} dependencies: {licenses.name}, {bill.name}, {lock.name}")


def unaudited(report: dict[str, list[dict[str, object]]]) -> list[str]:
    """Returns the packages that pip-audit skipped, except keras-seq, which may be unpublished."""
    skipped = [package for package in report["dependencies"] if "skip_reason" in package]
    return [str(package["name"]) for package in skipped if package["name"] != "keras-seq"]


def refused_licenses(table: str) -> list[str]:
    """Returns the packages all of whose licenses are refused, from the table in CSV."""
    names = []
    for row in csv.DictReader(table.splitlines()):
        if all(REFUSED_LICENSES.match(license.strip()) for license in row["License"].split(";")):
            names.append(row["Name"])
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dry-run", action="store_true", help="do all but the tag")
    dry_run = parser.parse_args().dry_run
    number = version()
    check_sources(number, dry_run)
    with tempfile.TemporaryDirectory() as temporary:
        source, wheel = build(number, Path(temporary))
        try_wheel(wheel, number, Path(temporary))
    if dry_run:
        print(f"{number} can be released. Nothing was tagged, pushed or uploaded.")
        return
    run("git", "tag", "--annotate", f"v{number}", "--message", f"keras-seq {number}", cwd=ROOT)
    print(f"Tagged v{number}. Nothing was pushed or uploaded. To publish:")
    print(f"git push origin v{number} && python -m twine upload {source} {wheel}")


if __name__ == "__main__":
    main()
