"""What a release has, read back from its folder; and that it is the same when it is made again."""

import hashlib
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import ComponentType
from release.images import PROCESSORS

import edgeshare
from tests.kit.deploy.repository import OTHER_SHA256, VERSION, WHEELS_SHA256, Repository
from tests.kit.programs.archive import read_image

CONFIG = "application/vnd.cncf.helm.config.v1+json"
CONTENT = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
IMAGES = ("edgeshare", "edgeshare-node")
BILLS = tuple(f"{name}.{processor}.cdx.json" for name in IMAGES for processor in PROCESSORS)
SAME = ("chart", "edgeshare-0.2.0.tgz", "edgeshare.yaml", *BILLS)


def images_of(objects: str) -> set[str]:
    """What the containers of a rendered chart run."""
    specs = [each["spec"]["template"]["spec"] for each in yaml.safe_load_all(objects) if each and pods_of(each)]
    return {container["image"] for spec in specs for container in spec["containers"]}


def pods_of(each: dict[str, Any]) -> bool:
    """Whether it makes pods."""
    return each["kind"] in ("DaemonSet", "Deployment", "Job")


def blob(layout: Path, described: dict[str, Any]) -> bytes:
    """What a descriptor of an OCI layout leads to, which is what it says."""
    algorithm, digest = described["digest"].split(":")
    content = (layout / "blobs" / algorithm / digest).read_bytes()
    assert (algorithm, digest) == ("sha256", hashlib.sha256(content).hexdigest())
    assert described["size"] == len(content)
    return content


def files(folder: Path) -> dict[str, bytes]:
    """Path below a folder → content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_chart_is_an_oci_layout_of_the_package_that_helm_takes(released: Path, helm: Path, tmp_path: Path) -> None:
    layout, package = released / "chart", released / f"edgeshare-{VERSION}.tgz"
    assert json.loads((layout / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    (tagged,) = json.loads((layout / "index.json").read_text())["manifests"]
    assert tagged["annotations"] == {"org.opencontainers.image.ref.name": VERSION}
    manifest = json.loads(blob(layout, tagged))
    assert manifest["mediaType"] == tagged["mediaType"]
    assert manifest["config"]["mediaType"] == CONFIG
    shown = subprocess.run([helm, "show", "chart", package], check=True, stdout=-1, text=True).stdout
    described = json.loads(blob(layout, manifest["config"]))
    assert described == yaml.safe_load(shown)
    assert (described["version"], described["appVersion"]) == (VERSION, VERSION)
    (content,) = manifest["layers"]
    assert content["mediaType"] == CONTENT
    assert blob(layout, content) == package.read_bytes()
    assert {path.name for path in (layout / "blobs/sha256").iterdir()} == {
        each["digest"].removeprefix("sha256:") for each in (tagged, manifest["config"], content)
    }


def test_files_of_the_package_are_the_charts_at_the_commits_time(released: Path) -> None:
    tree = released.parent.parent
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=tree, check=True, stdout=-1, text=True)
    with tarfile.open(released / f"edgeshare-{VERSION}.tgz") as package:
        members = package.getmembers()
    assert {member.mtime for member in members} == {int(done.stdout)}
    chart = tree / "deploy/chart"
    assert sorted(member.name.removeprefix("edgeshare/") for member in members) == sorted(
        str(path.relative_to(chart)) for path in chart.rglob("*") if path.is_file() and path.name != ".helmignore"
    )


@pytest.mark.parametrize(
    ("values", "others"),
    [
        ((), {"registry.k8s.io/kube-scheduler:v1.30.0"}),
        (("--set=assigner.enabled=true", "--set=assigner.tls.enabled=false"), set()),
    ],
)
def test_charts_values_name_the_images_of_the_release(
    released: Path, helm: Path, values: tuple[str, ...], others: set[str]
) -> None:
    package = released / f"edgeshare-{VERSION}.tgz"
    command = [helm, "template", "edgeshare", package, "--kube-version=1.30.0", *values]
    done = subprocess.run(command, check=True, stdout=-1, text=True)
    assert images_of(done.stdout) == {f"edgeshare:{VERSION}"} | others


def test_manifest_is_the_trees_with_the_version_in_it(released: Path, manifest: Path) -> None:
    text = (released / "edgeshare.yaml").read_text()
    assert images_of(text) == {f"edgeshare:{VERSION}"}
    assert text == manifest.read_text().replace(edgeshare.__version__, VERSION)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize(("name", "layers"), [("edgeshare", 2), ("edgeshare-node", 1)])
def test_images_are_named_and_labelled_by_version_and_commit(
    released: Path, name: str, layers: int, processor: str
) -> None:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=released.parent.parent, check=True, stdout=-1, text=True)
    image = read_image(released / f"{name}.oci.tar", processor)
    assert (image["name"], image["architecture"]) == (f"{name}:{VERSION}", processor)
    assert image["layers"] == layers
    assert {
        "org.opencontainers.image.title": name,
        "org.opencontainers.image.version": VERSION,
        "org.opencontainers.image.revision": done.stdout.strip(),
        "org.opencontainers.image.licenses": "Apache-2.0",
    }.items() <= image["Labels"].items()


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize(("name", "packages"), [("edgeshare", {"second": "3"}), ("edgeshare-node", {})])
def test_bill_names_the_packages_that_an_image_holds_with_their_hashes(
    released: Path, name: str, packages: dict[str, str], processor: str
) -> None:
    bill = Bom.from_json(json.loads((released / f"{name}.{processor}.cdx.json").read_text()))
    image = bill.metadata.component
    assert image is not None
    assert (image.type, image.name, image.version) == (ComponentType.CONTAINER, name, VERSION)
    found = {component.name: component for component in bill.components}
    assert {each.name: each.version for each in found.values()} == {
        "edgeshare": VERSION,
        "first-package": "1.2",
        "libc6": "2.36-9+deb12u14",
        **packages,
    }
    hashes = {each: {hashed.content for hashed in component.hashes} for each, component in found.items()}
    assert hashes["edgeshare"] == set()
    # Of which file it was made, nobody can tell; of the other its wheel lies there.
    assert hashes["first-package"] == set(OTHER_SHA256)
    assert hashes.get("second", {WHEELS_SHA256}) == {WHEELS_SHA256}
    assert str(found["first-package"].purl) == "pkg:pypi/first-package@1.2"
    assert str(found["libc6"].purl) == f"pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch={processor}&distro=debian-12"


def test_checksums_fit_and_leave_no_file_out(released: Path) -> None:
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=released, check=True, stdout=-1, text=True
    )
    named = {line.removesuffix(": OK") for line in done.stdout.splitlines()}
    assert named == files(released).keys() - {"SHA256SUMS"}
    assert {*(f"{name}.oci.tar" for name in IMAGES), *BILLS, "edgeshare.yaml", "chart/index.json"} < named


def test_each_bill_has_a_number_of_its_own(released: Path) -> None:
    assert len({json.loads((released / name).read_text())["serialNumber"] for name in BILLS}) == len(BILLS)


def test_second_release_of_a_commit_is_the_same_wherever_it_is_made(
    released: Path, repository: Repository, tmp_path: Path
) -> None:
    again = repository.clone(tmp_path / "elsewhere").released()
    for name in SAME:
        one, other = released / name, again / name
        assert (files(one), one.is_file() and one.read_bytes()) == (
            files(other),
            other.is_file() and other.read_bytes(),
        ), name


def test_release_leaves_the_tree_as_it_was(released: Path) -> None:
    tree = released.parent.parent
    done = subprocess.run(["git", "status", "--porcelain"], cwd=tree, check=True, stdout=-1, text=True)
    assert done.stdout == ""
    assert [path.name for path in (tree / "dist").iterdir()] == [f"edgeshare-{VERSION}"]
