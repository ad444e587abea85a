"""The file by which an API server is reached."""

import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def kubeconfig(path: Path, cluster: Json, user: Json | None = None) -> Path:
    """Writes one of a cluster and a user, who has a token unless another way is given. It is private: JSON, which is
    YAML."""
    settings = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user or {"token": "a.b.c"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(settings))
    return path
