"""The pods: sizes of a small mix, the same in each run."""

from collections.abc import Iterator
from typing import Any

from bench.assigner.objects import sizes
from edgeshare.contract.names import GPU_MEMORY_MIB, GPU_PERCENT

COLLECTION = "/api/v1/namespaces/default/pods"


def pods(prefix: str, count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """So many, each with the path that it is made at."""
    for number, (percent, memory_mib) in enumerate(sizes(count)):
        yield COLLECTION, pod(f"{prefix}-{number}", percent, memory_mib)


def pod(name: str, percent: int, memory_mib: int = 0) -> dict[str, Any]:
    """One that has a share."""
    limits = {"cpu": "100m", "memory": "64Mi", GPU_PERCENT: str(percent)}
    if memory_mib:
        limits[GPU_MEMORY_MIB] = str(memory_mib)
    main = {"name": "main", "image": "workload", "resources": {"limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [main]},
    }
