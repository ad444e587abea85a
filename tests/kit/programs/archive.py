"""Images without a registry: OCI archives made of plain tar files."""

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"


def write_layer(path: Path, files: Mapping[str, Path]) -> Path:
    """Write a layer that holds each local file at its path in the image, owned by root, with its own mode."""

    def as_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        return member

    with tarfile.open(path, "w") as layer:
        for inside, local in sorted(files.items()):
            # A link on this machine would lead nowhere in the image.
            layer.add(local.resolve(), arcname=inside.lstrip("/"), filter=as_root)
    return path


def write_image(
    path: Path,
    name: str,
    layers: Sequence[Path],
    *,
    entrypoint: Sequence[str],
    env: Mapping[str, str] | None = None,
    machine: str = os.uname().machine,
) -> Path:
    """Write an OCI archive (image-layout 1.0.0) of uncompressed `layers`, lowest first, for this processor or another.

    It imports as `name`, which is complete, as `localhost/thing:1`.
    """
    with tarfile.open(path, "w") as archive:
        described = [_add_blob(archive, LAYER, layer) for layer in layers]
        config = {
            "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine),
            "os": "linux",
            "config": {
                "Entrypoint": list(entrypoint),
                "Env": [f"{key}={value}" for key, value in (env or {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}).items()],
            },
            # The digest of an uncompressed layer is its diff id too.
            "rootfs": {"type": "layers", "diff_ids": [layer["digest"] for layer in described]},
            # Buildah takes an image that has a layer on one without history for a broken one.
            "history": [{"created_by": layer.name} for layer in layers],
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": _add_blob(archive, CONFIG, _json(config)),
            "layers": described,
        }
        index = {
            "schemaVersion": 2,
            "manifests": [
                {
                    **_add_blob(archive, MANIFEST, _json(manifest)),
                    # containerd reads the first, buildah the second.
                    "annotations": {
                        "io.containerd.image.name": name,
                        "org.opencontainers.image.ref.name": name,
                    },
                }
            ],
        }
        _add(archive, "index.json", _json(index))
        _add(archive, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
    return path


def read_image(path: Path, processor: str = "amd64") -> dict[str, Any]:
    """What an OCI archive of one image says of it: its `name`, how many `layers` it has, the `architecture` that it is
    for, and how it runs; of one that is there for several processors, that for `processor`."""
    with tarfile.open(path) as archive:

        def read(name: str) -> Any:
            file = archive.extractfile(name)
            assert file is not None
            return json.load(file)

        def blob(described: Mapping[str, str]) -> Any:
            return read(f"blobs/{described['digest'].replace(':', '/')}")

        (tagged,) = read("index.json")["manifests"]
        manifest = blob(tagged)
        if tagged["mediaType"] == INDEX:
            (its,) = (each for each in manifest["manifests"] if each["platform"]["architecture"] == processor)
            manifest = blob(its)
        config = blob(manifest["config"])
    name = tagged["annotations"]["org.opencontainers.image.ref.name"]
    said = {"name": name, "layers": len(manifest["layers"]), "architecture": config["architecture"]}
    return {**said, **config["config"]}


def _add_blob(archive: tarfile.TarFile, media_type: str, content: Path | bytes) -> dict[str, str | int]:
    if isinstance(content, Path):
        with content.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        archive.add(content, arcname=f"blobs/sha256/{digest}")
        size_bytes = content.stat().st_size
    else:
        digest = hashlib.sha256(content).hexdigest()
        _add(archive, f"blobs/sha256/{digest}", content)
        size_bytes = len(content)
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": size_bytes}


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def _json(content: object) -> bytes:
    return json.dumps(content, sort_keys=True).encode()
