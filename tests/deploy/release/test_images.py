"""What is read out of an image's archive."""

from pathlib import Path

import pytest
from release.command import ReleaseError
from release.debian import installed
from release.images import contents

from tests.kit.deploy import repository
from tests.kit.deploy.repository import OS_RELEASE, PLACE
from tests.kit.programs.archive import write_image, write_layer

DEBIAN = repository.DEBIAN.format(processor="amd64")


def metadata(folder: Path, name: str, version: str) -> Path:
    """A file as pip leaves one."""
    path = folder / f"{name}-{version}"
    path.write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n\nAbout it.\n")
    return path


def test_packages_are_those_that_no_later_layer_takes_away(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    nothing.touch()
    kept, gone, newer = (metadata(tmp_path, *each) for each in (("kept", "1"), ("moved", "1"), ("moved", "2")))
    lower = {f"{PLACE}/kept-1.dist-info/METADATA": kept, f"{PLACE}/moved-1.dist-info/METADATA": gone}
    upper = {f"{PLACE}/.wh.moved-1.dist-info": nothing, f"{PLACE}/moved-2.dist-info/METADATA": newer}
    layers = [write_layer(tmp_path / "lower.tar", lower), write_layer(tmp_path / "upper.tar", upper)]
    archive = write_image(tmp_path / "image.tar", "localhost/thing:1", layers, entrypoint=["/thing"])
    found = contents(archive, "amd64").python
    assert sorted((each["name"], each["version"]) for each in found) == [("kept", "1"), ("moved", "2")]


def test_python_packages_of_the_base_are_left_out(tmp_path: Path) -> None:
    its = metadata(tmp_path, "its-own", "1")
    layer = write_layer(
        tmp_path / "layer.tar", {"usr/local/lib/python3.11/site-packages/its_own-1.dist-info/METADATA": its}
    )
    archive = write_image(tmp_path / "image.tar", "localhost/thing:1", [layer], entrypoint=["/thing"])
    assert contents(archive, "amd64").python == []


def test_debian_packages_are_those_that_the_last_layer_says_are_installed(tmp_path: Path) -> None:
    texts = {"before": DEBIAN, "after": DEBIAN.replace("deb12u14", "deb12u15"), "os-release": OS_RELEASE}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    lower = {"var/lib/dpkg/status": tmp_path / "before", "usr/lib/os-release": tmp_path / "os-release"}
    upper = {"var/lib/dpkg/status": tmp_path / "after"}
    layers = [write_layer(tmp_path / "lower.tar", lower), write_layer(tmp_path / "upper.tar", upper)]
    archive = write_image(tmp_path / "image.tar", "localhost/thing:1", layers, entrypoint=["/thing"])
    assert [(each.name, each.version) for each in contents(archive, "amd64").debian] == [("libc6", "2.36-9+deb12u15")]


@pytest.mark.parametrize(
    ("status", "os_release", "why"),
    [
        (DEBIAN, "", "no ID in usr/lib/os-release"),
        (DEBIAN.replace("Version", "Vision"), OS_RELEASE, "a package without 'Version'"),
    ],
)
def test_base_that_does_not_say_what_it_has_is_refused(status: str, os_release: str, why: str) -> None:
    with pytest.raises(ReleaseError, match=why):
        installed(status, os_release)


def test_distribution_that_has_no_version_is_named_alone() -> None:
    (found,) = installed(DEBIAN, "ID=debian\n")
    assert str(found.url).endswith("?arch=amd64&distro=debian")


def test_base_for_another_processor_is_refused(tmp_path: Path) -> None:
    texts = {"var/lib/dpkg/status": DEBIAN, "usr/lib/os-release": OS_RELEASE}
    for name, text in texts.items():
        (tmp_path / Path(name).name).write_text(text)
    layer = write_layer(tmp_path / "layer.tar", {name: tmp_path / Path(name).name for name in texts})
    archive = write_image(tmp_path / "image.tar", "localhost/thing:1", [layer], entrypoint=["/thing"])
    with pytest.raises(ReleaseError, match="an image for arm64 begins with one that has packages for amd64"):
        contents(archive, "arm64")
