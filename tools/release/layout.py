"""What an OCI layout is made of (image-layout 1.0.0): blobs, each by its digest, and what says which is tagged."""

import hashlib
import json
import tarfile
from collections.abc import Mapping
from typing import Any

Descriptor = dict[str, Any]


def json_bytes(content: object) -> bytes:
    """Content as JSON, in the same bytes whenever it is written."""
    return json.dumps(content, sort_keys=True).encode()


def described(media_type: str, content: bytes) -> Descriptor:
    """What names a blob."""
    digest = hashlib.sha256(content).hexdigest()
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}


def blob_path(descriptor: Mapping[str, Any]) -> str:
    """Where in a layout the blob is that this names."""
    return f"blobs/{descriptor['digest'].replace(':', '/')}"


def heads(tagged: Descriptor) -> dict[str, bytes]:
    """The files of a layout beside its blobs, by their names, where one of them is tagged."""
    index = {"schemaVersion": 2, "manifests": [tagged]}
    return {"index.json": json_bytes(index), "oci-layout": json_bytes({"imageLayoutVersion": "1.0.0"})}


def read_json(archive: tarfile.TarFile, name: str) -> Any:
    """A file of a layout that is an archive."""
    file = archive.extractfile(name)
    assert file is not None
    return json.load(file)
