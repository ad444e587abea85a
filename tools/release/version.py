"""The version of a release: one that a chart, an image, a label and a Python package can all have."""

import semver
from packaging.version import InvalidVersion
from packaging.version import Version as PackageVersion

from release.command import ReleaseError

LABEL_CHARACTERS = 63
"""Of a label's value in Kubernetes; the chart says its version in one (app.kubernetes.io/version)."""


def parse(text: str) -> str:
    """The version that somebody wrote. Raises ReleaseError where it is none, or where something could not carry it."""
    try:
        version = semver.Version.parse(text)
    except ValueError as error:
        raise ReleaseError(
            f"VERSION={text!r} is no semantic version: make release VERSION=0.2.0, or 0.2.0-rc.1"
        ) from error
    if version.build is not None:
        raise ReleaseError(f"VERSION={text}: no tag of an image has a `+`: leave out +{version.build}")
    if len(text) > LABEL_CHARACTERS:
        raise ReleaseError(f"VERSION={text}: longer than the {LABEL_CHARACTERS} characters of a label in Kubernetes")
    if not _is_of_packages(text):
        raise ReleaseError(f"VERSION={text}: no Python package has that version: after the `-` alpha.1, beta.1 or rc.1")
    return text


def of_tag(tag: str) -> str | None:
    """The version that a tag of the repository says, as `v0.2.0` or `0.2.0`; None where it says something else."""
    text = tag.removeprefix("v")
    return text if semver.Version.is_valid(text) else None


def _is_of_packages(text: str) -> bool:
    """Whether it sorts among a package's versions as it does here: `1.0.0-1` would come after 1.0.0 there."""
    try:
        return not PackageVersion(text).is_postrelease
    except InvalidVersion:
        return False
