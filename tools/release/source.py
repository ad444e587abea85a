"""A commit's files with the version in them."""

import re
import tarfile
import tempfile
from pathlib import Path

from release.command import ReleaseError
from release.commit import Commit

SAID = (
    ("edgeshare/__init__.py", r'^__version__ = "(.*)"$'),
    ("deploy/chart/Chart.yaml", r"^version: (.*)$"),
    ("deploy/chart/Chart.yaml", r"^appVersion: (.*)$"),
)
"""File, and the one line of it that says the version. The wheel's is the first; the last is also the tag of the images
that the chart's values name, whose `image.tag` is empty."""


def write(commit: Commit, version: str, folder: Path) -> None:
    """Put them into a folder that is empty, or missing. Raises ReleaseError."""
    with tempfile.TemporaryDirectory() as scratch:
        archive = Path(scratch) / "source.tar"
        commit.archive(archive)
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
    for name, pattern in SAID:
        text = (folder / name).read_text()
        found = list(re.finditer(pattern, text, re.MULTILINE))
        if len(found) != 1:
            raise ReleaseError(f"{name} says the version {len(found)} times, not once, as a line {pattern}")
        begin, end = found[0].span(1)
        (folder / name).write_text(text[:begin] + version + text[end:])
