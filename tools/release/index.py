"""One archive of an image that is there for several processors: an image index of the OCI layout."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

INDEX = "application/vnd.oci.image.index.v1+json"


def write_index(archives: Mapping[str, Path], target: Path) -> None:
    """Write an OCI archive of the images in others, each of one, under the name that all have; the key is the processor
    that each is for, as Go calls it. What several have in common is there once."""
    described, names = [], set()
    with tarfile.open(target, "w") as whole:
        for processor, path in archives.items():
            with tarfile.open(path) as one:
                (tagged,) = json.loads(_read(one, "index.json"))["manifests"]
                names.add(json.dumps(tagged.pop("annotations"), sort_keys=True))
                described.append({**tagged, "platform": {"os": "linux", "architecture": processor}})
                there = set(whole.getnames())
                for member in one:
                    if member.isfile() and member.name.startswith("blobs/") and member.name not in there:
                        whole.addfile(member, one.extractfile(member))
        (name,) = names
        index = _json({"schemaVersion": 2, "mediaType": INDEX, "manifests": described})
        digest = hashlib.sha256(index).hexdigest()
        tagged = {
            "mediaType": INDEX,
            "digest": f"sha256:{digest}",
            "size": len(index),
            "annotations": json.loads(name),
        }
        _add(whole, f"blobs/sha256/{digest}", index)
        _add(whole, "index.json", _json({"schemaVersion": 2, "manifests": [tagged]}))
        _add(whole, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None
    return file.read()


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def _json(content: object) -> bytes:
    return json.dumps(content, sort_keys=True).encode()
