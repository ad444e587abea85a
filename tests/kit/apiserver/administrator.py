"""What a real API server answers its administrator, over connections that are kept: a kubectl takes 60 ms of a
processor to begin."""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from urllib3 import PoolManager
from urllib3.exceptions import HTTPError

from edgeshare.kube.client_library import connection
from tests.kit.processes.errors import NodeError

ANSWER_S = 120  # a safety limit for a loaded machine
SERVERS = 8  # that are asked by one test process at a time, and some


def told(
    kubeconfig: Path,
    method: str,
    path: str,
    thing: Mapping[str, Any] | None = None,
    kind: str = "application/json",
) -> dict[str, Any]:
    """What who holds that kubeconfig is answered, as an object. Raises NodeError where it does not succeed."""
    host, pool = _reached(kubeconfig, kubeconfig.stat().st_mtime_ns)
    body, headers = (None, {}) if thing is None else (json.dumps(thing), {"Content-Type": kind})
    try:
        answer = pool.request(method, f"{host}{path}", body=body, headers=headers, timeout=ANSWER_S)
    except HTTPError as error:
        raise NodeError(f"{method} {path}: {error}") from error
    if answer.status // 100 != 2:
        raise NodeError(f"{method} {path}: {answer.data.decode()}")
    found: dict[str, Any] = answer.json()
    return found


@lru_cache(SERVERS)
def _reached(kubeconfig: Path, written_ns: int) -> tuple[str, PoolManager]:
    """The server and the connections to it: others once the file is ``written`` anew, as that of a new node is."""
    host, pool, _ = connection(kubeconfig)
    return host, pool
