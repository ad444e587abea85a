"""Several processes that simulate, so that every processor has one."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from edgeshare.contract.errors import Unavailable
from tests.kit.virtual.world import HOOK, World, build_libraries, reason_not_to

T = TypeVar("T")
R = TypeVar("R")


class Worlds:
    """As many worlds as there are processors, of one build of the libraries. Raises as World, and Unavailable where
    nothing can be simulated on this machine."""

    def __init__(self, hook: Path = HOOK) -> None:
        reason = reason_not_to()
        if reason is not None:
            raise Unavailable(reason)
        libraries = build_libraries()
        self._worlds = [World(libraries, hook) for _ in range(os.cpu_count() or 1)]
        self._free = list(self._worlds)

    def map(self, one: Callable[[World, T], R], all_of: Iterable[T]) -> Iterator[R]:
        """What ``one`` returns for each, in order, as many at a time as there are worlds."""

        def in_world(of: T) -> R:
            world = self._free.pop()
            try:
                return one(world, of)
            finally:
                self._free.append(world)

        with ThreadPoolExecutor(len(self._worlds)) as pool:
            yield from pool.map(in_world, all_of)

    def close(self) -> None:
        """Ends their processes."""
        for world in self._worlds:
            world.close()
