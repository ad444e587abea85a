"""The pods: sizes of a small mix, the same in each run."""

import random
from collections.abc import Iterator
from typing import Any

from edgeshare.contract.names import GPU_MEMORY_MIB, GPU_PERCENT

COLLECTION = "/api/v1/namespaces/default/pods"
SEED = 8
SIZES: tuple[tuple[int, int, int], ...] = (
    # percent, MiB (0: the same part as of the units), weight
    (5, 0, 10),
    (10, 0, 15),
    (20, 0, 15),
    (25, 8_000, 10),
    (30, 0, 10),
    (50, 0, 15),
    (70, 12_000, 5),
    (100, 0, 15),
    (200, 0, 4),
    (800, 0, 1),
)


def pods(prefix: str, count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """So many, each with the path that it is made at."""
    dice = random.Random(SEED)
    for number, (percent, memory_mib, _) in enumerate(dice.choices(SIZES, [weight for *_, weight in SIZES], k=count)):
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
