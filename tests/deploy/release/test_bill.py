"""What a bill of materials can be made of, and what it cannot."""

import re
from pathlib import Path

import pytest
from packaging.metadata import RawMetadata
from release.bill import bill, pinned
from release.command import ReleaseError
from release.commit import Commit
from release.images import Contents

from tests.kit.deploy.repository import OTHER_SHA256, REQUIREMENTS, ROOT, VERSION

COMMIT = Commit(Path(), "0" * 40, 0)


def package(name: str, version: str) -> RawMetadata:
    """What one says of itself."""
    return {"name": name, "version": version}


def test_hash_is_known_of_each_package_that_the_lock_names(tmp_path: Path) -> None:
    requirements = (ROOT / "requirements.txt").read_text()
    known = pinned(requirements, tmp_path)
    assert len(known) == len(re.findall("==", re.sub(r";.*", "", requirements))) > 20
    assert all(known.values())
    assert sum(map(len, known.values())) == requirements.count("--hash=sha256:")


def test_package_is_found_by_any_way_to_write_its_name(tmp_path: Path) -> None:
    known = pinned(REQUIREMENTS, tmp_path)
    held = Contents([package("edgeshare", VERSION), package("First.Package", "1.2")], [], "amd64")
    text = bill("edgeshare", VERSION, COMMIT, held, known)
    assert all(each in text for each in ('"first-package"', *OTHER_SHA256))


@pytest.mark.parametrize(
    ("packages", "why"),
    [
        ([], "the image edgeshare holds no package edgeshare"),
        ([package("edgeshare", "0.1.9")], f"the image holds edgeshare 0.1.9, not {VERSION}"),
        ([package("second", "3.1")], "the image holds second 3.1, which requirements.txt names no hash of"),
        ([package("fourth", "1")], "the image holds fourth 1, which requirements.txt names no hash of"),
    ],
)
def test_image_that_holds_something_else_is_refused(packages: list[RawMetadata], why: str, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=re.escape(why)):
        bill("edgeshare", VERSION, COMMIT, Contents(packages, [], "amd64"), pinned(REQUIREMENTS, tmp_path))


def test_wheel_of_a_version_to_come_is_the_versions() -> None:
    text = bill("edgeshare", "1.0.0-rc.1", COMMIT, Contents([package("edgeshare", "1.0.0rc1")], [], "amd64"), {})
    assert "pkg:pypi/edgeshare@1.0.0rc1" in text
