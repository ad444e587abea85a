"""What the assigner tells Prometheus of itself. docs/parts/assigner.md explains each."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from prometheus_client import Counter, Histogram
from prometheus_client.core import Metric

from edgeshare.contract.accelerator_kind import KINDS, AcceleratorKind
from edgeshare.contract.errors import InvalidRequest, Unavailable
from edgeshare.contract.units import UNITS_PER_DEVICE
from edgeshare.http.prometheus import gauge
from sharemgr.cluster.extender.assigner import Assigner
from sharemgr.cluster.extender.binding import Binder
from sharemgr.cluster.server.endings import Ending
from sharemgr.cluster.state.nodes import Node

PREFIX = "edgeshare_assigner"

BUCKETS_S = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
"""Around the target of 10 ms, and up to kube-scheduler's own limit of 5 s."""


class Metrics:
    """What was counted since the process began; and, of whoever leads, how things stand."""

    def __init__(self) -> None:
        self.verb_seconds = Histogram(
            f"{PREFIX}_verb_seconds",
            "How long a verb took, from its message to its answer.",
            ["verb"],
            buckets=BUCKETS_S,
            registry=None,
        )
        self.binding_seconds = Histogram(
            f"{PREFIX}_binding_seconds",
            "How long the API server took to answer a Binding: a part of bind.",
            buckets=BUCKETS_S,
            registry=None,
        )
        self.bound = Counter(f"{PREFIX}_bindings", "Pods that were bound.", registry=None)
        self.unbound = Counter(f"{PREFIX}_bindings_failed", "Bindings that came to nothing.", ["reason"], registry=None)
        self.turned_down = Counter(f"{PREFIX}_turned_down", "Filterings after which no node was left.", registry=None)
        self.refused = Counter(
            f"{PREFIX}_messages_refused", "Messages of kube-scheduler that could not be read.", ["verb"], registry=None
        )
        self.answers = Counter(
            f"{PREFIX}_answers", "Requests for verbs, by what was answered (HTTP).", ["verb", "status"], registry=None
        )
        self.ended = Counter(
            f"{PREFIX}_connections_ended", "Connections that were ended, by why.", ["reason"], registry=None
        )
        for kind in Ending:
            # At 0 from the start: what begins with the first of them has no rate.
            self.ended.labels(kind)
        self.retries = Counter(
            f"{PREFIX}_retries", "Times that kube-scheduler was told to try pods again.", registry=None
        )

    def measuring(self, verb: str) -> Callable[[], "Measuring"]:
        """What makes what is entered while that verb is answered."""
        return partial(Measuring, self.verb_seconds.labels(verb), self.refused.labels(verb))

    def families(self, assigner: Assigner | None, binder: Binder | None) -> Iterator[Metric]:
        """All of them; ``assigner`` and ``binder`` are None while another replica leads."""
        counted = (self.bound, self.unbound, self.turned_down, self.refused, self.answers)
        for each in (self.verb_seconds, self.binding_seconds, *counted, self.ended, self.retries):
            yield from each.collect()
        yield _gauge("leading", "1 on the replica that answers.", assigner is not None)
        if assigner is not None and binder is not None:
            yield from _standing(assigner, binder)


class Measuring:
    """Entered while a verb is answered: how long that takes, and whether its message is refused."""

    __slots__ = ("_refused", "_seconds", "_started_s")

    def __init__(self, seconds: Histogram, refused: Counter) -> None:
        self._seconds = seconds
        self._refused = refused

    def __enter__(self) -> None:
        self._started_s = time.perf_counter()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._seconds.observe(time.perf_counter() - self._started_s)
        if kind is not None and issubclass(kind, InvalidRequest | Unavailable):
            self._refused.inc()


def certificate_ends(ends_s: Mapping[str, float]) -> Metric:
    """When certificates hold no more, by whose they are."""
    text = (
        "When a certificate, the assigner's, of who was let in last, or the status', holds no more: seconds since 1970."
    )
    rows = [((whose,), end_s) for whose, end_s in ends_s.items()]
    return gauge(PREFIX, "certificate_end_timestamp_seconds", text, ("of",), rows)


def _standing(assigner: Assigner, binder: Binder) -> Iterator[Metric]:
    books = assigner.books
    nodes = list(books.ledger)
    told = [
        ("nodes", "Nodes that tell of devices.", sum(1 for node in nodes if node.inventory.devices)),
        ("nodes_unreadable", "Nodes whose AcceleratorNode says nonsense.", len(books.faults)),
        *(figure for kind in KINDS.values() for figure in _of_kind(kind, nodes)),
        ("pods", "Pods that are bound and hold devices.", books.pods),
        (
            "pods_flagged",
            "Pods that did not come through the assigner, or whose assignment lies, or whose device is gone.",
            len(books.flagged),
        ),
        ("pods_waiting", "Pods that no node could hold when they were last tried.", len(assigner.waits())),
        ("bindings_in_doubt", "Bindings whose answer was lost; what they take stays reserved.", binder.in_doubt),
    ]
    for name, text, value in told:
        yield _gauge(name, text, value)


def _of_kind(kind: AcceleratorKind, nodes: Sequence[Node]) -> Iterator[tuple[str, str, int]]:
    """How things stand with the devices of one kind; nothing of one that no node has, but for GPUs."""
    found = [(node, device) for node in nodes for device in node.of(kind.accelerator)]
    if not found and not kind.is_default:
        return
    word, called = kind.word, f"{kind.prefix}s"
    units = "units" if kind.is_default else f"{kind.prefix}_units"
    free = [node.free(device) for node, device in found]
    yield called, f"{word}s that nodes tell of.", len(found)
    yield f"{called}_unhealthy", "Of these, those that are not healthy.", sum(not device.healthy for _, device in found)
    over = sum(min(each) < 0 for each in free)
    yield f"{called}_overcommitted", f"{word}s of which pods hold more than there is.", over
    yield units, f"Units of all {word}s.", UNITS_PER_DEVICE * len(found)
    yield f"{units}_held", f"Units of {word}s that pods hold.", sum(UNITS_PER_DEVICE - each[0] for each in free)


def _gauge(name: str, text: str, value: int) -> Metric:
    return gauge(PREFIX, name, text, (), [((), float(value))])
