"""Bills of materials (SBOM): which packages of Python and Debian an image has, as CycloneDX."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.factory.license import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.metadata import RawMetadata
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from release.command import ReleaseError
from release.commit import Commit
from release.debian import DebianPackage
from release.folder import sha256
from release.images import Contents

OURS = "edgeshare"
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")

Pinned = Mapping[tuple[str, Version], list[str]]
"""Name and version → SHA-256 of its file; of each where it is not known which."""


def pinned(requirements: str, wheels: Path) -> Pinned:
    """What a file of requirements with hashes names, as `make lock` writes it: of each package the file that is among
    the wheels, or all that its wheel could have been made of."""
    made_of = {sha256(path) for path in wheels.iterdir() if path.is_file()}
    found = {}
    for line in requirements.replace("\\\n", " ").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        requirement = Requirement(line.partition(" --hash")[0])
        ((version),) = (each.version for each in requirement.specifier)
        hashes = HASH.findall(line)
        used = [each for each in hashes if each in made_of]
        found[canonicalize_name(requirement.name), Version(version)] = used or hashes
    return found


def bill(name: str, version: str, commit: Commit, contents: Contents, known: Pinned) -> str:
    """The JSON of an image's bill, the same each time for the same commit and contents.

    Raises ReleaseError where the image holds another version of the project than is released, or a package of Python
    that `known` has no hash for.
    """
    image = Component(
        name=name, version=version, type=ComponentType.CONTAINER, bom_ref=f"image:{name}@{version}/{contents.processor}"
    )
    components = [_component(each, version, known) for each in contents.python]
    if OURS not in {each.name for each in components}:
        raise ReleaseError(f"the image {name} holds no package {OURS}: look at the Dockerfile")
    components += map(_of_debian, contents.debian)
    bom = Bom(
        # One of a release and its commit, where a random one would make two of the same.
        serial_number=uuid5(NAMESPACE_URL, f"{name}:{version}@{commit.digest}/{contents.processor}"),
        metadata=BomMetaData(component=image, timestamp=datetime.fromtimestamp(commit.made_s, UTC)),
        components=components,
    )
    bom.register_dependency(image, components)
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def _of_debian(package: DebianPackage) -> Component:
    """A package of the base, of whose file dpkg keeps no hash."""
    return Component(name=package.name, version=package.version, bom_ref=str(package.url), purl=package.url)


def _component(package: RawMetadata, version: str, known: Pinned) -> Component:
    """A package of an image. Ours has no hash: it is made of the commit."""
    name, its = canonicalize_name(package["name"]), Version(package["version"])
    if name == OURS and its != Version(version):
        raise ReleaseError(f"the image holds {OURS} {its}, not {version}: what was built is not this commit")
    if name != OURS and not known.get((name, its)):
        raise ReleaseError(f"the image holds {name} {its}, which requirements.txt names no hash of: run make lock")
    expression = package.get("license_expression")
    url = PackageURL(type="pypi", name=name, version=str(its))
    return Component(
        name=name,
        version=str(its),
        bom_ref=str(url),
        purl=url,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=each) for each in known.get((name, its), [])],
        licenses=[LicenseFactory().make_from_string(expression)] if expression else [],
    )
