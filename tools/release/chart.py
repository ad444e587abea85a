"""The chart: a package as `helm install` takes it, and the same as an OCI layout, which registries are filled from."""

import gzip
import hashlib
import io
import json
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import yaml

from release.command import said

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.cncf.helm.config.v1+json"
CONTENT = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
"""As Helm's own registry client has them (HIP 6, "OCI support")."""

Descriptor = dict[str, object]


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
    described = yaml.safe_load((chart / "Chart.yaml").read_text())
    version = described["version"]
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": _add_blob(layout, CONFIG, _json(described)),
        "layers": [_add_blob(layout, CONTENT, package.read_bytes())],
        "annotations": {
            "org.opencontainers.image.title": described["name"],
            "org.opencontainers.image.description": described["description"],
            "org.opencontainers.image.version": version,
            "org.opencontainers.image.created": datetime.fromtimestamp(made_s, UTC).isoformat(),
        },
    }
    tagged = {
        **_add_blob(layout, MANIFEST, _json(manifest)),
        "annotations": {"org.opencontainers.image.ref.name": version},
    }
    (layout / "index.json").write_bytes(_json({"schemaVersion": 2, "manifests": [tagged]}))
    (layout / "oci-layout").write_bytes(_json({"imageLayoutVersion": "1.0.0"}))


def _add_blob(layout: Path, media_type: str, content: bytes) -> Descriptor:
    digest = hashlib.sha256(content).hexdigest()
    blobs = layout / "blobs/sha256"
    blobs.mkdir(parents=True, exist_ok=True)
    (blobs / digest).write_bytes(content)
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}


def _json(content: object) -> bytes:
    return json.dumps(content, sort_keys=True).encode()
