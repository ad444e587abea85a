"""The images: built by the Dockerfile, and what is in one."""

import platform
import shutil
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from packaging.metadata import RawMetadata, parse_email

from release.command import ReleaseError, do, said
from release.debian import OS_RELEASE, STATUS, DebianPackage, installed
from release.layout import blob_path, read_json

TARGETS: Mapping[str, str] = MappingProxyType({"edgeshare": "cluster", "edgeshare-node": "node"})
"""Name of an image, as docs/install/image.md has them and the chart's values → the Dockerfile's target."""

PROCESSORS = ("amd64", "arm64")
"""Which an image is for, as Go and Debian call them."""

HERE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
"""This machine's."""

METADATA = "opt/edgeshare/lib/python*/site-packages/*.dist-info/METADATA"
"""Where the Dockerfile has pip install."""

REMOVED = ".wh."
"""What a layer takes away has this before its name (OCI image specification, "Whiteouts")."""


@dataclass(frozen=True)
class Image:
    """An image to be: its name with the version as its tag, what the Dockerfile calls it, the processor that it is for,
    and its labels."""

    name: str
    target: str
    processor: str
    labels: Mapping[str, str]


@dataclass(frozen=True)
class Builder:
    """What builds images of the files at `context`: buildah or docker. Whatever else it has to know is in `options`.

    Files keep the time that they were written at: with another, Python would compile each anew at every start.
    """

    program: str
    context: Path
    options: Sequence[str]

    def build_wheels(self, processor: str, folder: Path) -> Path:
        """Build the wheels that all images for a processor are made of, and return their folder: it is below `folder`,
        beside what else buildah writes. Raises ReleaseError."""
        wheels = folder / f"wheels-{processor}"
        # An image that is tagged with a place is left in no store.
        tag = [f"--tag=dir:{folder / f'image-{processor}'}"] if self.program == "buildah" else []
        self._build(processor, "--target=wheels", f"--output=type=local,dest={wheels}", *tag)
        return wheels

    def build(self, image: Image, wheels: Path, archive: Path) -> None:
        """Build an image of wheels and write it as an OCI archive. Raises ReleaseError."""
        labels = [f"--label={key}={value}" for key, value in image.labels.items()]
        if self.program == "buildah":
            written = f"--tag=oci-archive:{archive}:{image.name}"
        else:
            written = f"--output=type=oci,dest={archive},name={image.name}"
        words = (f"--target={image.target}", f"--build-context=wheels={wheels}", *labels, written)
        self._build(image.processor, *words)

    def _build(self, processor: str, *words: str) -> None:
        if self.program == "buildah":
            # What a Dockerfile may ask for, and older ones do not say of themselves.
            build = ["buildah", "build", f"--build-arg=BUILDPLATFORM=linux/{HERE}"]
        else:
            build = ["docker", "buildx", "build"]
        do([*build, f"--platform=linux/{processor}", *self.options, *words, self.context], {})


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
    processor: str
    """Which it is for."""


def contents(archive: Path, processor: str) -> Contents:
    """Read the archive of an image for a processor. Raises ReleaseError where it is not clear what its base has, or
    where that is for another one."""
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
    debian = installed(status, os_release)
    # Of a base that a machine has for one alone, buildah takes that.
    if others := {each.architecture for each in debian} - {processor, "all"}:
        raise ReleaseError(
            f"an image for {processor} begins with one that has packages for {', '.join(sorted(others))}: "
            "name a base that there is for all of them"
        )
    return Contents([parse_email(said)[0] for said in found.values()], debian, processor)


def _layers(archive: tarfile.TarFile) -> Iterator[tarfile.TarFile]:
    """An image's layers, lowest first."""
    (tagged,) = read_json(archive, "index.json")["manifests"]
    for each in read_json(archive, blob_path(tagged))["layers"]:
        with tarfile.open(fileobj=archive.extractfile(blob_path(each))) as layer:
            yield layer
