"""A storm of short pods, with kubelet and plugin killed again and again, puts none on another GPU than it was assigned.

The test is the cluster part: it writes down what each pod is assigned, binds it, and counts as free what the API server
says is over. What the pods did is seen by the simulated driver alone."""

import random
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest
from onenode.binder import Binder, left_to_binder
from onenode.errors import NodeError
from onenode.given import listed, shares
from onenode.gpu_watch import GpuWatch
from onenode.layout import NODE_NAME
from onenode.node import Node
from onenode.parts import PLUGIN, Parts
from onenode.pods import WAIT, Pods, container, pod
from onenode.pods_watch import End, PodsWatch
from onenode.release import GPUS, MACHINE
from onenode.waiting import COME_S, until

from edgeshare.names import GPU_PERCENT
from simgpu.machine import Machine

PODS = 200
SEED = 6
PERCENTS = (5, 10, 10, 15, 20, 20, 25, 30, 30, 40, 50, 100)
SECONDS = (0.2, 0.5, 1.0)
READY_TO_BIND = 40
"""Pods that wait for their Binding at most: made well before it, and bound in another order."""
BURST_BELOW = 30
"""Percent of all GPUs together that may be taken when the next burst is bound."""
STRIKES = ("kubelet", "plugin", "kubelet", "plugin", "plugin-and-kubelet")
STRIKE_EVERY = 30
"""Pods that succeed between two strikes."""

STRIKE_BURST = 6
"""The smallest burst that is struck."""

Burst = list[tuple[str, tuple[str, ...]]]


@dataclass
class Storm:
    """What the binder knows."""

    gpus: list[str]
    dice: random.Random = field(default_factory=lambda: random.Random(SEED))
    percents: dict[str, int] = field(default_factory=dict)
    """Pod → percent, of all that were ever made."""
    waiting: list[str] = field(default_factory=list)
    """In the order in which they were made."""
    assigned: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of all that were ever bound: the record, made at the Binding."""
    live: set[str] = field(default_factory=set)
    succeeded: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    struck: set[str] = field(default_factory=set)
    """Bound while kubelet or plugin was away, or not over when one was killed."""
    out_of_order: set[str] = field(default_factory=set)
    """Bound while the kubelet was away, equal ones the youngest first."""
    twins: int = 0
    """Bindings of the same size to different GPUs, one right after the other."""

    def load(self) -> Counter[str]:
        """GPU → percent that live pods have of it."""
        loads = Counter(dict.fromkeys(self.gpus, 0))
        for name in self.live:
            for gpu in self.assigned[name]:
                loads[gpu] += min(self.percents[name], 100)
        return loads

    def names_to_make(self) -> list[str]:
        """Pods that are to be made now, so that all that are to succeed do, and some always wait."""
        wanted = PODS - len(self.succeeded) - len(self.live) - len(self.waiting)
        room = READY_TO_BIND - len(self.waiting)
        if room < min(wanted, READY_TO_BIND // 2):
            return []
        first = len(self.percents)
        names = [f"storm-{number}" for number in range(first, first + min(room, wanted))]
        self.percents |= {name: self.dice.choice(PERCENTS) for name in names}
        self.waiting += names
        return names

    def burst(self) -> Burst:
        """As many as fit, equal ones one after another and to different GPUs in turn, the youngest first."""
        loads = self.load()
        if sum(loads.values()) > BURST_BELOW:
            return []
        chosen: Burst = []
        last: dict[int, str] = {}
        order = self.dice.sample(self.waiting, len(self.waiting))
        if min(loads.values()) == 0:
            # Whole GPUs would wait to the end.
            order.sort(key=lambda name: self.percents[name] < 100)
        for name in order:
            percent = self.percents[name]
            fitting = [gpu for gpu in self.gpus if loads[gpu] + percent <= 100]
            if fitting:
                gpu = last[percent] = self.dice.choice([gpu for gpu in fitting if gpu != last.get(percent)] or fitting)
                loads[gpu] += percent
                chosen.append((name, (gpu,)))
        made = {name: place for place, name in enumerate(self.waiting)}
        chosen.sort(key=lambda each: (self.percents[each[0]], -made[each[0]]))
        return self._in_turn(chosen)

    def _in_turn(self, chosen: Burst) -> Burst:
        ordered: Burst = []
        while chosen:
            before = ordered[-1] if ordered else None

            def is_twin(each: tuple[str, tuple[str, ...]], before: tuple[str, tuple[str, ...]] | None = before) -> bool:
                same = before is not None and self.percents[each[0]] == self.percents[before[0]]
                return before is not None and same and each[1] != before[1]

            following = next(filter(is_twin, chosen), chosen[0])
            self.twins += is_twin(following)
            chosen.remove(following)
            ordered.append(following)
        return ordered

    def ended(self, end: End) -> None:
        """A pod of the storm is over."""
        if end.pod in self.live:
            self.live.remove(end.pod)
            if end.succeeded:
                self.succeeded.add(end.pod)
            else:
                self.failed[end.pod] = end.why


@dataclass
class Scene:
    """What the storm goes over."""

    node: Node
    parts: Parts
    pods: Pods
    binder: Binder

    def make(self, storm: Storm) -> None:
        """Makes the pods that are to wait, and takes away those that are over."""
        if names := storm.names_to_make():
            self.pods.create(*(left_to_binder(self._pod(storm, name)) for name in names))
            over = sorted(storm.assigned.keys() - storm.live - storm.deleted)
            if over:
                self.node.kubectl("delete", "--wait=false", "pod", *over)
                self.pods.forget(*over)
                storm.deleted.update(over)

    def bind(self, storm: Storm, burst: Burst) -> None:
        """Writes down and binds."""
        for name, gpus in burst:
            storm.assigned[name] = gpus
            storm.live.add(name)
            storm.waiting.remove(name)
            self.binder.bind(name, gpus)

    def strike(self, storm: Storm, kind: str, burst: Burst) -> None:
        """Kills in the midst of a burst."""
        life, plugin = self.parts.life(), self.parts.container(PLUGIN)
        before = len(burst) // 3
        self.bind(storm, burst[:before])
        if "plugin" in kind:
            self.node.kill_container(plugin)
        if kind == "kubelet":
            self._kill_kubelet(storm, burst[before:])
        elif kind == "plugin":
            self.bind(storm, burst[before:])
        else:
            with self.node.kubelet_down(kill=True):
                self.bind(storm, burst[before:])
        storm.struck |= storm.live
        self.parts.until_registered_after(life)

    def _kill_kubelet(self, storm: Storm, burst: Burst) -> None:
        """Binds a burst meanwhile, of which the new kubelet hears all at once, when the plugin has registered: it takes
        the oldest first."""
        address = self.parts.address()
        before = self.parts.figures(address).get("registrations_total", 0)
        with ExitStack() as until_registered:
            with self.node.kubelet_down(kill=True):
                self.bind(storm, burst)
                storm.out_of_order.update(name for name, _ in burst)
                until_registered.enter_context(self.node.api_server_hung())
            until(lambda: self.parts.figures(address).get("registrations_total", 0) > before, "the plugin registers")

    @staticmethod
    def _pod(storm: Storm, name: str) -> dict[str, object]:
        burn = ("--seconds", str(storm.dice.choice(SECONDS)), "--kernel-us", "5000")
        return pod(name, [container(name, "main", *burn, limits={GPU_PERCENT: storm.percents[name]})])


@pytest.fixture
def scene(node: Node, edgeshare: Machine, parts: Parts, pods: Pods) -> Scene:
    """The node with edgeshare, of which nothing is allocated."""
    until(lambda: not listed() and not shares(), "nothing is allocated")
    return Scene(node, parts, pods, Binder(node))


def rage(scene: Scene, storm: Storm, ends: PodsWatch) -> None:
    """Lets the storm run until all have succeeded."""
    strikes = list(STRIKES)
    while len(storm.succeeded) < PODS:
        scene.make(storm)
        if burst := storm.burst():
            due = len(storm.succeeded) >= STRIKE_EVERY * (1 + len(STRIKES) - len(strikes))
            if strikes and due and len(burst) >= STRIKE_BURST:
                scene.strike(storm, strikes.pop(0), burst)
            else:
                scene.bind(storm, burst)
        end = ends.next(COME_S)
        if end is None:
            stuck = scene.node.kubectl("describe", "pod", *sorted(storm.live))
            raise NodeError(f"no pod has ended for {COME_S} s:\n{stuck}")
        while end is not None:
            storm.ended(end)
            end = ends.next(0)
    assert not strikes


@pytest.mark.timeout(900, func_only=True)
def test_a_storm_over_restarts_puts_no_pod_on_another_gpu_and_leaves_nothing_allocated(
    kubelet: str, scene: Scene
) -> None:
    gpus = [gpu.uuid for gpu in Machine(MACHINE).gpus()]
    assert len(gpus) == GPUS
    storm = Storm(gpus)
    with GpuWatch(MACHINE, storm.percents) as watch, PodsWatch(scene.node) as ends:
        rage(scene, storm, ends)
    why = Counter(storm.failed.values())
    print(f"{len(storm.assigned)} pods bound, {storm.twins} twins; percent at most: {dict(watch.peaks)}; {dict(why)}")
    print(f"out of order: {len(storm.out_of_order)}, of which succeeded {len(storm.out_of_order & storm.succeeded)}")

    assert {name: watch.seen[name] for name in storm.succeeded} == {
        name: set(storm.assigned[name]) for name in storm.succeeded
    }
    assert all(found <= set(storm.assigned[name]) for name, found in watch.seen.items())
    assert max(watch.peaks.values()) <= 100, watch.at_peak
    # Those alone whose kubelet or plugin was away; and they were refused, not misplaced.
    assert storm.failed.keys() <= storm.struck, storm.failed
    assert all(text.startswith("UnexpectedAdmissionError") for text in storm.failed.values()), storm.failed
    # It was a storm.
    assert storm.twins > PODS / 10
    assert storm.out_of_order & storm.succeeded
    assert min(watch.peaks[gpu] for gpu in gpus) > 50

    scene.pods.delete_all()
    until(lambda: listed() == {}, "the kubelet lists nobody with units")
    until(lambda: scene.parts.figures().get("live_allocations") == 0, "the plugin's metric says 0")
    until(lambda: shares() == [], "the manager has no allocation")
    scene.node.kubectl("wait", "--for=jsonpath={.status.allocationCount}=0", f"acceleratornode/{NODE_NAME}", WAIT)
