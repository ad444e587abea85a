"""Programs that share a device: the cases that people asked about, and a grid of mixes."""

import random
from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise, product

from tests.kit.sim.device.simulated_device import Program, Tenant

KINDS = {
    "0.1 ms kernels": Program(100),
    "1 ms kernels": Program(1000),
    "10 ms kernels": Program(10_000),
    "4 x 5 us, 50 us": Program(5, 4, 50),
    "8 x 20 us, 0.1 ms": Program(20, 8, 100),
    "8 x 20 us, 0.5 ms": Program(20, 8, 500),
    "8 x 20 us, 5 ms": Program(20, 8, 5000),
    "1 ms, 0.5 ms": Program(1000, 1, 500),
    "10 ms, 20 ms": Program(10_000, 1, 20_000),
    "50 x 1 ms, 200 ms": Program(1000, 50, 200_000),
    "8 x 1 ms at 30 Hz": Program(1000, 8, 0, 33_333),
}
"""Those that never pause, and those that do: so many kernels, and then thinking."""

CASES: dict[str, tuple[tuple[Tenant, ...], tuple[float, ...]]] = {
    "1: 50/30/20, 8 x 20 us, 0.1 ms": (
        tuple(Tenant(Program(20, 8, 100), percent) for percent in (50, 30, 20)),
        (48, 29, 19),
    ),
    "2: 50/30/20, 4 x 5 us, 50 us": (
        tuple(Tenant(Program(5, 4, 50), percent) for percent in (50, 30, 20)),
        (22.3, 22.3, 22.3),
    ),
    "3: 70, 1 ms, 0.5 ms; 30, 50 us, 50 us": (
        (Tenant(Program(1000, 1, 500), 70), Tenant(Program(50, 1, 50), 30)),
        (60, 14),
    ),
    "4: 50/50, 4 x 100 us, 0.3 ms": (
        tuple(Tenant(Program(100, 4, 300), percent) for percent in (50, 50)),
        (49, 49),
    ),
    "5: 20, 8 x 20 us, 0.4 ms; 80, 0.3 ms kernels": (
        (Tenant(Program(20, 8, 400), 20), Tenant(Program(300), 80)),
        (19, 0),
    ),
}
"""Programs, and the percents of the device that each should have at least."""


@dataclass(frozen=True)
class Mix:
    """Programs, and the requests of those."""

    programs: tuple[Program, ...]
    percents: tuple[int, ...]

    @property
    def tenants(self) -> tuple[Tenant, ...]:
        """As they are run."""
        return tuple(Tenant(program, percent) for program, percent in zip(self.programs, self.percents, strict=True))

    @property
    def saturating(self) -> tuple[bool, ...]:
        """Which of them never pause."""
        return tuple(not program.batch for program in self.programs)

    @property
    def longest_kernel_ms(self) -> float:
        """Nobody can be let in before it has ended."""
        return max(program.kernel_us for program in self.programs) / 1000


def _mixes() -> list[Mix]:
    kinds = tuple(KINDS.values())
    found = [Mix((KINDS[name],) * 3, (50, 30, 20)) for name in ("8 x 20 us, 0.1 ms", "4 x 5 us, 50 us")]
    found += [Mix(pair, (50, 50)) for pair in combinations_with_replacement(kinds, 2)]
    found += [Mix(pair, percents) for pair in product(kinds, kinds) for percents in ((70, 30), (90, 10))]
    for three in combinations_with_replacement(kinds, 3):
        turns = range(3 if len(set(three)) > 1 else 1)
        found += [Mix((*three[turn:], *three[:turn]), (50, 30, 20)) for turn in turns]
    chance = random.Random(7)
    found += [Mix(tuple(chance.choice(kinds) for _ in range(20)), (5,) * 20) for _ in range(30)]
    return found


def random_mix(number: int) -> Mix:
    """Two to five programs of any length, one in four of which never pauses, and requests that fill the device."""
    chance = random.Random(number)
    count = chance.randint(2, 5)
    cuts = sorted(chance.sample(range(5, 100, 5), count - 1))
    percents = tuple(end - begin for begin, end in pairwise((0, *cuts, 100)))
    return Mix(tuple(_random_program(chance) for _ in range(count)), percents)


def _random_program(chance: random.Random) -> Program:
    kernel_us = round(10 ** chance.uniform(0.7, 4))
    if chance.random() < 0.25:
        return Program(kernel_us)
    return Program(kernel_us, chance.choice((1, 2, 4, 8, 16, 50)), round(10 ** chance.uniform(1.7, 5)))


MIXES = _mixes()
"""1,176: pairs, triples in each order, and thirty times twenty by chance."""
PART = MIXES[3::10]
"""Of each kind some: what `make test` runs."""
RANDOM = tuple(random_mix(number) for number in range(300))
