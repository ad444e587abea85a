"""Clusters and pods that nobody recorded, in the openb format: to try policies on what they were not chosen by.

``python -m tests.kit.sim.cluster.generated_traces FOLDER`` writes each as ``NAME-nodes.csv`` and ``NAME-pods.csv``.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random


@dataclass(frozen=True)
class Node:
    """As many of a kind of node."""

    count: int
    gpus: int
    model: str
    cores: int
    ram_gib: int


@dataclass(frozen=True)
class Pod:
    """A kind of pod, and its weight among all."""

    weight: int
    gpus: int
    percent: tuple[int, int]
    """Of a GPU, from … to."""
    cores: tuple[int, int]
    ram_gib: tuple[int, int]
    models: str = ""


MIXED = (
    Node(40, 8, "A100", 96, 768),
    Node(40, 4, "V100", 32, 256),
    Node(60, 2, "T4", 64, 256),
    Node(20, 1, "L4", 8, 32),
)
LIKE = (Node(60, 8, "H100", 128, 1024),)

WHOLE = Pod(40, 1, (100, 100), (4, 12), (16, 64))
PARTS = Pod(40, 1, (10, 90), (1, 8), (4, 32))
PAIRS = Pod(4, 2, (100, 100), (8, 24), (32, 128))
EIGHTS = Pod(2, 8, (100, 100), (48, 96), (128, 512))
WITHOUT = Pod(14, 0, (0, 0), (1, 8), (2, 32))

TRACES: dict[str, tuple[tuple[Node, ...], tuple[Pod, ...]]] = {
    "mixed": (MIXED, (WHOLE, PARTS, PAIRS, EIGHTS, WITHOUT)),
    "parts": (MIXED, (PARTS, WITHOUT)),
    "few-sizes": (LIKE, (Pod(3, 1, (60, 60), (6, 6), (32, 32)), Pod(2, 1, (40, 40), (2, 2), (8, 8)), WHOLE)),
    "many-gpus": (
        MIXED,
        (WHOLE, Pod(30, 2, (100, 100), (8, 24), (32, 128)), Pod(10, 8, (100, 100), (48, 96), (64, 512))),
    ),
    "models": (
        MIXED,
        (
            WHOLE,
            PARTS,
            EIGHTS,
            Pod(8, 1, (20, 100), (2, 12), (8, 64), "T4"),
            Pod(8, 1, (100, 100), (4, 12), (16, 64), "V100|A100"),
            Pod(2, 1, (20, 80), (1, 6), (2, 24), "L4"),
        ),
    ),
    "few-cores": (
        MIXED,
        (Pod(40, 1, (100, 100), (6, 16), (16, 64)), Pod(40, 1, (10, 90), (2, 12), (4, 32)), PAIRS, WITHOUT),
    ),
    "few-ram": (MIXED, (Pod(40, 1, (100, 100), (2, 6), (32, 160)), Pod(40, 1, (10, 90), (1, 4), (16, 90)), EIGHTS)),
}


def write(name: str, folder: Path) -> tuple[Path, Path]:
    """Writes one of TRACES, always the same, and returns its two files."""
    nodes, pods = TRACES[name]
    random = Random(name)
    capacity = 100 * sum(node.count * node.gpus for node in nodes)
    node_lines = ["sn,cpu_milli,memory_mib,gpu,model"]
    for kind in nodes:
        node_lines += [
            f"{kind.model}-{number:03d},{kind.cores * 1000},{kind.ram_gib * 1024},{kind.gpus},{kind.model}"
            for number in range(kind.count)
        ]
    pod_lines = ["name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec"]
    units = 0
    while units < capacity:
        (kind_of_pod,) = random.choices(pods, [pod.weight for pod in pods])
        percent = random.randint(*kind_of_pod.percent)
        units += percent * kind_of_pod.gpus
        cores, ram_gib = random.randint(*kind_of_pod.cores), random.randint(*kind_of_pod.ram_gib)
        ask = f"{kind_of_pod.gpus},{percent * 10},{kind_of_pod.models}"
        pod_lines.append(f"pod-{len(pod_lines)},{cores * 1000},{ram_gib * 1024},{ask}")
    return _save(folder / f"{name}-nodes.csv", node_lines), _save(folder / f"{name}-pods.csv", pod_lines)


def _save(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


if __name__ == "__main__":
    for each in TRACES:
        write(each, Path(sys.argv[1]))
