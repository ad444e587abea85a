"""The four verbs of a kube-scheduler extender: what is said to them, to the assigner and back. filter, prioritize and
preempt write nothing."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from edgeshare.contract.errors import EdgeshareError, InvalidRequest
from sharemgr.cluster.extender.assigner import Assigner
from sharemgr.cluster.extender.binding import Binder
from sharemgr.cluster.extender.messages import PreemptionArgs, parse, parse_args, parse_binding
from sharemgr.cluster.extender.metrics import Metrics
from sharemgr.cluster.placement.preemption import is_being_made_room_for, victims
from sharemgr.cluster.placement.reasons import unmangled
from sharemgr.cluster.server.serving import Verb
from sharemgr.cluster.state.pods import SharePod, parse_pod


class Verbs:
    """What kube-scheduler asks of one assigner, and how it is answered."""

    def __init__(self, assigner: Assigner, binder: Binder, metrics: Metrics) -> None:
        self._assigner = assigner
        self._binder = binder
        self._metrics = metrics
        self.by_name: Mapping[str, Verb] = {
            "filter": self._measured("filter", self._filter),
            "prioritize": self._measured("prioritize", self._prioritize),
            "bind": self._measured_later("bind", self._bind),
            "preempt": self._measured_later("preempt", self._preempt),
        }

    def _filter(self, body: bytes) -> object:
        args = parse_args(body)
        pod = parse_pod(args.pod)
        try:
            names = args.names
        except InvalidRequest as error:
            # Of an answer that is not 200 kube-scheduler reads no word, and this one its operator has to mend.
            self._metrics.refused.labels(verb="filter").inc()
            return {"Error": unmangled(str(error))}
        found = self._assigner.filter(pod, names)
        if not found.nodes:
            self._metrics.turned_down.inc()
        return {
            "NodeNames": found.nodes,
            "FailedNodes": found.failed,
            "FailedAndUnresolvableNodes": found.never,
            "Error": "",
        }

    def _prioritize(self, body: bytes) -> object:
        args = parse_args(body)
        scores = self._assigner.prioritize(parse_pod(args.pod), args.names)
        return [{"Host": name, "Score": score} for name, score in scores.items()]

    async def _bind(self, body: bytes) -> object:
        binding = parse_binding(body)
        try:
            await self._binder.bind(*binding)
        except EdgeshareError as error:
            self._metrics.unbound.labels(reason=type(error).__name__).inc()
            return {"Error": unmangled(str(error))}
        self._metrics.bound.inc()
        return {"Error": ""}

    async def _preempt(self, body: bytes) -> object:
        args = parse(PreemptionArgs, body)
        pod: SharePod = parse_pod(args.pod)
        found: dict[str, object] = {}
        if is_being_made_room_for(self._assigner.books, pod):
            return {"NodeNameToMetaVictims": found}
        for node, proposed in args.victims.items():
            uids = [each.uid for each in proposed.pods or ()]
            # Of hundreds of nodes; the other verbs are answered between them.
            await asyncio.sleep(0)
            chosen = victims(self._assigner.books, pod, node, uids)
            if chosen is None:
                continue
            # Where it fits the GPUs as they are, what kube-scheduler takes away is for something else.
            evicted = chosen or uids
            # kube-scheduler takes no node for an answer of which nobody has to go.
            if evicted:
                found[node] = {"Pods": [{"UID": uid} for uid in evicted], "NumPDBViolations": proposed.violations}
        return {"NodeNameToMetaVictims": found}

    def _measured(self, name: str, verb: Callable[[bytes], object]) -> Verb:
        measuring = self._metrics.measuring(name)

        def measured(body: bytes) -> object:
            with measuring():
                return verb(body)

        return measured

    def _measured_later(self, name: str, verb: Callable[[bytes], Coroutine[Any, Any, object]]) -> Verb:
        measuring = self._metrics.measuring(name)

        async def measured(body: bytes) -> object:
            with measuring():
                return await verb(body)

        return measured
