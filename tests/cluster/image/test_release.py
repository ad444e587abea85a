"""A release of this tree, with the images that the Dockerfile describes."""

import itertools
import json
import os
from pathlib import Path

import pytest

from tests.kit.onenode.images import BASE_NAME, BASE_PACKAGES, CROSS_BUILDER_PACKAGES, PROCESSORS, PROJECT, Store
from tests.kit.processes.command import run
from tests.kit.programs.archive import read_image

VERSION = "9.8.7-rc.1"
OF_PACKAGES = "9.8.7rc1"
LONG_S = 3600
"""All that an image is made of is compiled and fetched."""


def bill_of(path: Path, kind: str) -> dict[str, tuple[str, int]]:
    """Package, of Python (`pypi`) or of Debian (`deb`) → its version, and how many hashes it has."""
    components = [
        each for each in json.loads(path.read_text())["components"] if each["purl"].startswith(f"pkg:{kind}/")
    ]
    return {each["name"]: (each["version"], len(each.get("hashes", ()))) for each in components}


@pytest.mark.soak
@pytest.mark.timeout(LONG_S, func_only=True)
def test_release_has_both_images_and_says_what_is_in_them(scratch: Path) -> None:
    clone = scratch / "clone"
    run(["git", "clone", "--quiet", PROJECT, clone])
    store = Store(scratch)
    store.add_bases(BASE_NAME)
    options = ("--pull-never", f"--build-arg=BASE={BASE_NAME}", *store.add_builder(CROSS_BUILDER_PACKAGES))
    venv = PROJECT / ".venv"
    # What is set up already would be set up anew, as the clone's files are newer.
    make = ["make", "release", f"--assume-old={venv}/.tools", f"VENV={venv}"]
    run(
        [*make, f"VERSION={VERSION}", f"IMAGE_OPTIONS={' '.join(options)}"],
        cwd=clone,
        env={**os.environ, **store.environment()},
    )
    (released,) = (clone / "dist").iterdir()
    assert released.name == f"edgeshare-{VERSION}"
    run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=released)
    commit = run(["git", "rev-parse", "HEAD"], cwd=clone).strip()
    names = ("edgeshare", "edgeshare-node")
    for name, processor in itertools.product(names, PROCESSORS.values()):
        image = read_image(released / f"{name}.oci.tar", processor)
        assert (image["name"], image["architecture"]) == (f"{name}:{VERSION}", processor)
        assert image["Entrypoint"] == ["edgeshare"]
        assert image["Labels"]["org.opencontainers.image.version"] == VERSION
        assert image["Labels"]["org.opencontainers.image.revision"] == commit
        bill = bill_of(released / f"{name}.{processor}.cdx.json", "pypi")
        assert bill.pop("edgeshare") == (OF_PACKAGES, 0)
        assert ("numpy" in bill) == (name == "edgeshare")
        assert "grpcio" in bill
        # Each wheel is a file that requirements.txt names by hash.
        assert {hashes for _, hashes in bill.values()} == {1}
        assert {*BASE_PACKAGES, "libc6"} <= bill_of(released / f"{name}.{processor}.cdx.json", "deb").keys()
    for name in names:
        store.buildah("pull", "--quiet", f"oci-archive:{released / f'{name}.oci.tar'}")
        assert store.run(f"localhost/{name}:{VERSION}", "edgeshare", "--version").split()[-1] == VERSION
    whole, node = (read_image(released / f"{name}.oci.tar")["layers"] for name in names)
    assert whole == node + 1
