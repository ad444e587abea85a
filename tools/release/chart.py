"""The chart: a package as `helm install` takes it, and the same as an OCI layout, which registries are filled from."""

import gzip
import io
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import yaml

from release.command import said
from release.layout import Descriptor, blob_path, described, heads, json_bytes

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.cncf.helm.config.v1+json"
CONTENT = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
"""As Helm's own registry client has them (HIP 6, "OCI support")."""


def write_package(helm: str, chart: Path, made_s: int, folder: Path) -> Path:
    """Pack the chart into a folder: NAME-VERSION.tgz. Raises ReleaseError where Helm refuses it."""
    said([helm, "package", chart, f"--destination={folder}"])
    (package,) = folder.glob("*.tgz")
    _set_times(package, made_s)
    return package


def _set_times(package: Path, made_s: int) -> None:
    """Pack it once more, each file of the commit's time: Helm writes when it ran."""
    packed = io.BytesIO()
    with (
        tarfile.open(package) as before,
        gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.GNU_FORMAT) as after,
    ):
        for member in before:
            member.mtime = made_s
            after.addfile(member, before.extractfile(member))
    package.write_bytes(packed.getvalue())


def write_layout(package: Path, chart: Path, made_s: int, layout: Path) -> None:
    """Write the package as an OCI layout (image-layout 1.0.0), a folder, tagged by its version."""
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    version = about["version"]
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": _add_blob(layout, CONFIG, json_bytes(about)),
        "layers": [_add_blob(layout, CONTENT, package.read_bytes())],
        "annotations": {
            "org.opencontainers.image.title": about["name"],
            "org.opencontainers.image.description": about["description"],
            "org.opencontainers.image.version": version,
            "org.opencontainers.image.created": datetime.fromtimestamp(made_s, UTC).isoformat(),
        },
    }
    tagged = {
        **_add_blob(layout, MANIFEST, json_bytes(manifest)),
        "annotations": {"org.opencontainers.image.ref.name": version},
    }
    for name, content in heads(tagged).items():
        (layout / name).write_bytes(content)


def _add_blob(layout: Path, media_type: str, content: bytes) -> Descriptor:
    descriptor = described(media_type, content)
    blob = layout / blob_path(descriptor)
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(content)
    return descriptor
