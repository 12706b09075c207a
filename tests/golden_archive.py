"""Unpacks the archives of old formats in `tests/golden`."""

import tarfile
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"


def unpack(name: str, folder: Path) -> Path:
    """Unpacks an archive into a folder and returns the folder."""
    # Extraction filters exist since Python 3.11.4, and later versions warn if none is set.
    options = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(GOLDEN / name) as archive:
        archive.extractall(folder, **options)
    return folder
