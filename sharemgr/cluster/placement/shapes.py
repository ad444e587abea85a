"""The request shapes that the cluster sees, learned as pods come."""

from sharemgr.cluster.placement.demand import Demand, Seen, Shape, weigh
from sharemgr.cluster.placement.table import Table
from sharemgr.cluster.state.request import Request

SHAPES_MAX = 512
"""More would only slow the choice down: production clusters have some hundreds (FGD's trace: 151)."""

HALVE_AT = 20_000
"""Pods; then each count is halved, so that a shape that no longer comes is forgotten."""

WEIGH_EVERY_PODS = 50
"""What the shapes say of what is free is worked out anew so often; before a thousand pods, for each twentieth more."""


class Shapes:
    """Counts the shapes of the pods that come."""

    def __init__(self) -> None:
        self._seen: dict[Shape, Seen] = {}
        self._pods = 0
        self._demand: Demand | None = None
        self._demand_until = 0
        self._models = 0

    def see(self, request: Request) -> None:
        """A pod has come; to be called once for each."""
        for shape, ram_mib in shapes_of(request):
            seen = self._seen.setdefault(shape, Seen())
            seen.pods += 1
            seen.ram_mib += ram_mib
        self._pods += 1
        if self._pods % HALVE_AT == 0:
            for seen in self._seen.values():
                seen.pods /= 2
                seen.ram_mib /= 2
        if len(self._seen) > SHAPES_MAX:
            *others, _newest = self._seen
            del self._seen[min(others, key=lambda shape: self._seen[shape].pods)]

    def demand(self, table: Table) -> Demand:
        """What was learned so far, held against what is free now, or was a few pods ago."""
        if self._demand is None or self._pods >= self._demand_until or self._models != len(table.models):
            self._demand = weigh(self._seen, table)
            self._models = len(table.models)
            self._demand_until = self._pods + 1 + min(self._pods // 20, WEIGH_EVERY_PODS)
        return self._demand


def shapes_of(request: Request) -> list[tuple[Shape, float]]:
    """The shapes of a pod, one for each of its containers with GPUs, each with its MiB of RAM: the pod's CPU and RAM
    are parted as its units are."""
    return [
        (
            Shape(ask, request.cpu_milli * ask.devices * ask.units // request.units, request.models),
            request.ram_mib * ask.devices * ask.units / request.units,
        )
        for ask in request.asks
    ]
