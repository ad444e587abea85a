"""Asks all sources of a machine."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic_ns
from typing import TypeVar, cast

from edgeshare.contract.errors import Unavailable
from edgeshare.inventory.tree import Tree
from labeller.config import Config
from labeller.facts import Facts, Incomplete
from labeller.sources import buses, devicetree, jetson, nvml
from labeller.sources.coral import Corals

Found = TypeVar("Found")


@dataclass(frozen=True)
class Collected:
    """What one look found."""

    facts: Facts
    troubles: dict[str, str]
    """Source → why it could not be read this time. Its facts are those of the last time."""

    @property
    def unread(self) -> frozenset[str]:
        """Sources that could never be read yet."""
        return self.facts.unread


class Collector:
    """Looks at a machine, again and again. A source that fails for now keeps what it found before."""

    def __init__(self, config: Config, now_ns: Callable[[], int] = monotonic_ns) -> None:
        self._config = config
        self._tree = Tree(config.root)
        self._corals = Corals(self._tree, now_ns)
        self._facts = Facts()
        self._read: set[str] = set()

    def look(self) -> Collected:
        """Asks every source that the configuration names."""
        troubles: dict[str, str] = {}
        last = self._facts

        def ask(source: str, look: Callable[[], Found], kept: Found) -> Found:
            if source not in self._config.sources:
                return kept
            try:
                found = look()
            except Incomplete as error:
                troubles[source] = str(error)
                # Of what was never read in full, a part is better than nothing.
                return kept if source in self._read else cast(Found, error.found)
            except Unavailable as error:
                troubles[source] = str(error)
                return kept
            self._read.add(source)
            return found

        found = Facts(
            nvml=ask("nvml", lambda: nvml.look(self._tree), last.nvml),
            jetson=ask("jetson", lambda: jetson.look(self._tree), last.jetson),
            devicetree=ask(
                "devicetree", lambda: devicetree.look(self._tree, self._config.devicetree_nodes), last.devicetree
            ),
            corals=ask("coral", self._corals.look, last.corals),
            buses=ask("buses", lambda: buses.look(self._tree), last.buses),
        )
        self._facts = replace(found, unread=frozenset(troubles.keys() - self._read))
        return Collected(self._facts, troubles)
