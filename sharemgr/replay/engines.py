"""The pods of the published experiment: MLPerf v0.5 SingleStream engines, and when they arrive.

Ferikoglou et al., "Resource-aware GPU scheduling in Kubernetes". Times are fitted to that author's solo runs;
mobilenet's quantised form has no published memory, and is taken for as large as the plain one."""

from dataclasses import dataclass
from random import Random
from typing import NamedTuple

GUARANTEE_MIB = 1300
"""Of a pod that borrows: 4 % of the card."""
CARD_MIB = 32_510
"""Usable on a V100 of 32 GB."""
CARD_GIB = 31
"""As whole ones."""
ARRIVALS_S: dict[str, tuple[int, int]] = {"20-40": (20, 40), "15-30": (15, 30), "10-20": (10, 20), "burst": (0, 0)}
"""Bounds of the whole seconds between two pods; a burst: all within one second."""
PERCENTS = (0, 50, 100, 150, 200, 250)
"""By how much more is declared than needed."""


class Program(NamedTuple):
    """What an engine is of."""

    load_s: float
    query_s: float
    need_mib: int
    declared_gib: int
    """By those who declare whole GiB."""


PROGRAMS: dict[str, Program] = {
    "mobilenet": Program(5, 0.0098, 872, 1),
    "mobilenet-quantized": Program(5, 0.05, 872, 1),
    "resnet50": Program(13, 0.0102, 8388, 9),
    "ssd-mobilenet": Program(14, 0.118, 6994, 7),
    "ssd-mobilenet-quantized-finetuned": Program(14, 0.074, 6994, 7),
    "ssd-mobilenet-symmetrically-quantized-finetuned": Program(14, 0.0654, 6994, 7),
}
QUERIES: dict[str, tuple[tuple[int, int], ...]] = {
    "mobilenet": ((1024, 2), (2048, 2)),
    "mobilenet-quantized": ((256, 2), (512, 2)),
    "resnet50": ((4096, 2), (8192, 2)),
    "ssd-mobilenet": ((128, 3), (1024, 2)),
    "ssd-mobilenet-quantized-finetuned": ((64, 2), (1024, 2)),
    "ssd-mobilenet-symmetrically-quantized-finetuned": ((512, 2), (4096, 2)),
}
"""How many queries, and how many such engines."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One pod, with what only the replay knows."""

    number: int
    key: str
    arrives_at_s: float
    load_s: float
    work_s: float
    """Of its queries, alone on the card."""
    need_mib: int
    guarantee_mib: int
    limit_mib: int
    declared_gib: int


def draw(setting: str, percent: int, guaranteed_percent: int, seed: int) -> list[Engine]:
    """All engines in the order in which they arrive. So many percent of them are guaranteed all that they declare.

    ``percent`` is by how much they declare more than they need. The same seed draws the same order, arrivals and
    guaranteed ones at each percent.
    """
    random = Random(seed)
    kinds = [(name, queries) for name, of in QUERIES.items() for queries, count in of for _ in range(count)]
    random.shuffle(kinds)
    low, high = ARRIVALS_S[setting]
    guaranteed = set(random.sample(range(len(kinds)), round(len(kinds) * guaranteed_percent / 100)))
    engines, at_s = [], 0.0
    for number, (name, queries) in enumerate(kinds):
        at_s = at_s + random.randint(low, high) if high else number / len(kinds)
        program = PROGRAMS[name]
        limit_mib = min(CARD_MIB, program.need_mib * (100 + percent) // 100)
        engines.append(
            Engine(
                number,
                name,
                at_s,
                program.load_s,
                queries * program.query_s,
                program.need_mib,
                limit_mib if number in guaranteed else min(GUARANTEE_MIB, limit_mib),
                limit_mib,
                min(CARD_GIB, program.declared_gib * (100 + percent) // 100),
            )
        )
    return engines
