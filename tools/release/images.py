"""The images: built by the Dockerfile, and what is in one."""

import json
import shutil
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from packaging.metadata import RawMetadata, parse_email

from release.command import ReleaseError, do, said
from release.debian import OS_RELEASE, STATUS, DebianPackage, installed

TARGETS: Mapping[str, str] = MappingProxyType({"edgeshare": "cluster", "edgeshare-node": "node"})
"""Name of an image, as docs/install/image.md has them and the chart's values → the Dockerfile's target."""

METADATA = "opt/edgeshare/lib/python*/site-packages/*.dist-info/METADATA"
"""Where the Dockerfile has pip install."""

REMOVED = ".wh."
"""What a layer takes away has this before its name (OCI image specification, "Whiteouts")."""


@dataclass(frozen=True)
class Image:
    """An image to be: its name with the version as its tag, what the Dockerfile calls it, and its labels."""

    name: str
    target: str
    labels: Mapping[str, str]


@dataclass(frozen=True)
class Builder:
    """What builds images of the files at `context`: buildah or docker. Whatever else it has to know is in `options`.

    Files keep the time that they were written at: with another, Python would compile each anew at every start.
    """

    program: str
    context: Path
    options: Sequence[str]

    def build_wheels(self, folder: Path) -> Path:
        """Build the wheels that all images are made of, and return their folder: it is below `folder`, beside what else
        buildah writes. Raises ReleaseError."""
        wheels = folder / "wheels"
        # An image that is tagged with a place is left in no store.
        tag = [f"--tag=dir:{folder / 'image'}"] if self.program == "buildah" else []
        self._build("--target=wheels", f"--output=type=local,dest={wheels}", *tag)
        return wheels

    def build(self, image: Image, wheels: Path, archive: Path) -> None:
        """Build an image of wheels and write it as an OCI archive. Raises ReleaseError."""
        labels = [f"--label={key}={value}" for key, value in image.labels.items()]
        if self.program == "buildah":
            written = f"--tag=oci-archive:{archive}:{image.name}"
        else:
            written = f"--output=type=oci,dest={archive},name={image.name}"
        self._build(f"--target={image.target}", f"--build-context=wheels={wheels}", *labels, written)

    def _build(self, *words: str) -> None:
        build = ["buildah", "build"] if self.program == "buildah" else ["docker", "buildx", "build"]
        do([*build, *self.options, *words, self.context], {})


def builder() -> str:
    """What builds images here. Raises ReleaseError where nothing does."""
    if shutil.which("buildah"):
        return "buildah"
    if not shutil.which("docker"):
        raise ReleaseError("there is neither buildah nor docker on the PATH, to build the images by: install one")
    try:
        said(["docker", "buildx", "version"])
    except ReleaseError as error:
        raise ReleaseError(
            "there is docker but neither its plugin buildx, which writes OCI archives, nor buildah: install one"
        ) from error
    return "docker"


@dataclass(frozen=True)
class Contents:
    """What is known of what an image holds."""

    python: list[RawMetadata]
    """What the Python packages that the Dockerfile put into it say of themselves."""
    debian: list[DebianPackage]
    """Those of its base."""


def contents(archive: Path) -> Contents:
    """Read an image's archive. Raises ReleaseError where it is not clear what its base has."""
    found: dict[str, bytes] = {}
    with tarfile.open(archive) as tar:
        for layer in _layers(tar):
            for member in layer:
                path = PurePosixPath(member.name)
                if path.name.startswith(REMOVED):
                    gone = path.with_name(path.name.removeprefix(REMOVED))
                    found = {name: said for name, said in found.items() if not PurePosixPath(name).is_relative_to(gone)}
                elif member.isfile() and any(fnmatch(str(path), each) for each in (METADATA, STATUS, OS_RELEASE)):
                    file = layer.extractfile(member)
                    assert file is not None
                    found[str(path)] = file.read()
    status, os_release = (found.pop(name, b"").decode(errors="replace") for name in (STATUS, OS_RELEASE))
    return Contents([parse_email(said)[0] for said in found.values()], installed(status, os_release))


def _layers(archive: tarfile.TarFile) -> Iterator[tarfile.TarFile]:
    """An image's layers, lowest first."""
    (tagged,) = _read(archive, "index.json")["manifests"]
    for each in _read(archive, _blob(tagged))["layers"]:
        with tarfile.open(fileobj=archive.extractfile(_blob(each))) as layer:
            yield layer


def _blob(descriptor: Mapping[str, str]) -> str:
    return f"blobs/{descriptor['digest'].replace(':', '/')}"


def _read(archive: tarfile.TarFile, name: str) -> Any:
    file = archive.extractfile(name)
    assert file is not None
    return json.load(file)
