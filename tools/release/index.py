"""One archive of an image that is there for several processors: an image index of the OCI layout."""

import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

from release.layout import blob_path, described, heads, json_bytes, read_json

INDEX = "application/vnd.oci.image.index.v1+json"


def write_index(archives: Mapping[str, Path], target: Path) -> None:
    """Write an OCI archive of the images in others, each of one, under the name that all have; the key is the processor
    that each is for, as Go calls it. What several have in common is there once."""
    images, names = [], set()
    with tarfile.open(target, "w") as whole:
        for processor, path in archives.items():
            with tarfile.open(path) as one:
                (tagged,) = read_json(one, "index.json")["manifests"]
                names.add(json_bytes(tagged.pop("annotations")))
                images.append({**tagged, "platform": {"os": "linux", "architecture": processor}})
                there = set(whole.getnames())
                for member in one:
                    if member.isfile() and member.name.startswith("blobs/") and member.name not in there:
                        whole.addfile(member, one.extractfile(member))
        (name,) = names
        index = json_bytes({"schemaVersion": 2, "mediaType": INDEX, "manifests": images})
        tagged = {**described(INDEX, index), "annotations": json.loads(name)}
        for file, content in {blob_path(tagged): index, **heads(tagged)}.items():
            _add(whole, file, content)


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))
