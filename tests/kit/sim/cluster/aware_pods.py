"""What arrives at the cluster on which placement by profiles is shown: pods of inference, training and bursts; and
nodes for them."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from edgeshare.contract.units import UNITS_PER_DEVICE
from sharemgr.cluster.state import request as asked
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.request import Ask, Request
from tests.kit.sim.device.simulated_device import Program

SLOWNESS = {"A100": 1.0, "T4": 2.0}
"""By model: how many times as long a kernel takes as on the fastest."""
GPUS_A_NODE = 4


@dataclass(frozen=True)
class Kind:
    """A program that several pods run."""

    key: str
    is_a: str
    program: Program
    """On the fastest model."""
    units: int

    @property
    def latency(self) -> bool:
        """Whether its pods are of the latency class."""
        return self.is_a == "inference"

    def on(self, model: str) -> Program:
        """There its kernels take longer."""
        return replace(self.program, kernel_us=self.program.kernel_us * SLOWNESS[model])


@dataclass(frozen=True)
class Pod:
    """What arrives."""

    kind: Kind
    models: frozenset[str]

    @property
    def request(self) -> Request:
        """As the assigner takes it."""
        program = asked.Program(self.kind.key, self.kind.latency)
        return Request((Ask(1, self.kind.units),), models=self.models, program=program)


def _inference(chance: random.Random) -> tuple[Program, int]:
    """Requests of 1 to 8 ms at 10 to 30 Hz."""
    batch = chance.choice((2, 4, 8))
    return Program(_between(chance, 250, 1000), batch, 0, chance.choice((33_333, 50_000, 100_000))), 20


def _training(chance: random.Random) -> tuple[Program, int]:
    """Never waits; kernels of 5 to 30 ms."""
    return Program(_between(chance, 5000, 30_000)), chance.choice((30, 40, 60))


def _small_kernels(chance: random.Random) -> tuple[Program, int]:
    """Never waits; kernels of 0.1 to 1 ms."""
    return Program(_between(chance, 100, 1000)), chance.choice((30, 40, 60))


def _bursts(chance: random.Random) -> tuple[Program, int]:
    """Some kernels, then thinking; uses a twentieth to half of a GPU."""
    kernel_us, batch = _between(chance, 50, 1000), chance.choice((1, 4, 16))
    return Program(kernel_us, batch, kernel_us * batch * _between(chance, 1, 20)), chance.choice((10, 20, 30))


def _between(chance: random.Random, least: float, most: float) -> float:
    """As many of each order of magnitude."""
    return float(round(least * (most / least) ** chance.random()))


KINDS = {
    "inference": (_inference, 30),
    "training": (_training, 20),
    "small kernels": (_small_kernels, 10),
    "bursts": (_bursts, 40),
}
"""How a kind of program is made, and how many of a hundred pods are of it."""
KEYS = 8
"""Of each."""


def pods_of(count: int, seed: int) -> list[Pod]:
    """Pods in the order in which they arrive: half may have any model, a quarter each one only."""
    chance = random.Random(f"pods {seed}")
    kinds = {
        is_a: [Kind(f"{is_a} {number}", is_a, *make(chance)) for number in range(KEYS)]
        for is_a, (make, _) in KINDS.items()
    }
    parts = [part for _, part in KINDS.values()]
    models = [frozenset(SLOWNESS), frozenset(SLOWNESS), *(frozenset({model}) for model in SLOWNESS)]
    return [
        Pod(chance.choice(kinds[is_a]), chance.choice(models)) for is_a in chance.choices(list(KINDS), parts, k=count)
    ]


def nodes_for(pods: Sequence[Pod], asked_percent: int) -> list[Inventory]:
    """As many nodes, of each model in turn, as pods that ask for that part of their GPUs need."""
    units = sum(pod.kind.units for pod in pods)
    count = max(len(SLOWNESS), round(units / (asked_percent / 100 * UNITS_PER_DEVICE * GPUS_A_NODE)))
    models = list(SLOWNESS)
    return [
        Inventory(
            f"n{node}", tuple(Device(f"n{node}-{gpu}", models[node % len(models)], 0) for gpu in range(GPUS_A_NODE))
        )
        for node in range(count)
    ]
