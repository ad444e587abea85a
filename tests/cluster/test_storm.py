"""A storm of short pods, with kubelet and plugin killed again and again, puts none on another GPU than it was assigned.

The test is the cluster part: it writes down what each pod is assigned, binds it, and counts as free what the API server
says is over. What the pods did is seen by the simulated driver alone."""

from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from edgeshare.contract.names import GPU_PERCENT
from simgpu.machine import Machine
from tests.kit.onenode.installed.parts import PLUGIN, Parts
from tests.kit.onenode.installed.release import GPUS, MACHINE
from tests.kit.onenode.layout import NODE_NAME
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.binder import Binder, left_to_binder
from tests.kit.onenode.pods.given import listed, shares
from tests.kit.onenode.pods.pods import WAIT, Pods, container, pod
from tests.kit.onenode.pods.storm import STRIKE_BURST, Burst, Storm
from tests.kit.onenode.watches.gpu_watch import GpuWatch
from tests.kit.onenode.watches.pods_watch import PodsWatch
from tests.kit.processes.errors import NodeError
from tests.kit.processes.waiting import COME_S, until

SECONDS = (0.2, 0.5, 1.0)
STRIKES = ("kubelet", "plugin", "plugin-and-kubelet", "kubelet", "plugin")
"""The first of them are all kinds."""

MORE = 10
"""So many pods more where it was no storm yet."""

PEAK_OVER = 50
"""Percent that live processes on each GPU together ask for at least once."""


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
            storm.bound(name, gpus)
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


def rage(scene: Scene, storm: Storm, ends: PodsWatch, watch: GpuWatch) -> None:
    """Lets it run until all have succeeded, every strike has come, and it was a storm."""
    while goes_on(storm, watch):
        scene.make(storm)
        burst = storm.burst()
        if not storm.is_strike_due:
            scene.bind(storm, burst)
        elif len(burst) >= STRIKE_BURST:
            storm.strikes_done += 1
            scene.strike(storm, storm.strikes.pop(0), burst)
        end = ends.next(COME_S)
        if end is None:
            stuck = scene.node.kubectl("describe", "pod", *sorted(storm.live))
            raise NodeError(f"no pod has ended for {COME_S} s:\n{stuck}")
        while end is not None:
            storm.ended(end)
            end = ends.next(0)


def goes_on(storm: Storm, watch: GpuWatch) -> bool:
    """Whether there is more to come. What the machine makes of it is the machine's to say, so where it was no storm
    yet, as many pods more as it takes are bound, and struck."""
    if len(storm.succeeded) < storm.pods or storm.strikes:
        return True
    is_struck = bool(storm.out_of_order & storm.succeeded)
    if is_struck and storm.has_twins and all(watch.peaks[gpu] > PEAK_OVER for gpu in storm.gpus):
        return False
    storm.pods += MORE
    if not is_struck:
        storm.strikes.append("kubelet")
    return True


@pytest.mark.timeout(900, func_only=True)
def test_a_storm_over_restarts_puts_no_pod_on_another_gpu_and_leaves_nothing_allocated(
    kubelet: str, scene: Scene, counts: Mapping[str, int]
) -> None:
    gpus = [gpu.uuid for gpu in Machine(MACHINE).gpus()]
    assert len(gpus) == GPUS
    strikes = list(STRIKES[: counts["storm_strikes"]])
    storm = Storm(gpus, counts["storm_pods"], strikes, every=counts["storm_pods"] // (len(strikes) + 1))
    with GpuWatch(MACHINE, storm.percents) as watch, PodsWatch(scene.node) as ends:
        rage(scene, storm, ends, watch)
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
    assert not storm.strikes
    assert storm.has_twins
    assert storm.out_of_order & storm.succeeded
    assert min(watch.peaks[gpu] for gpu in gpus) > PEAK_OVER

    scene.pods.delete_all()
    until(lambda: listed() == {}, "the kubelet lists nobody with units")
    until(lambda: scene.parts.figures().get("live_allocations") == 0, "the plugin's metric says 0")
    until(lambda: shares() == [], "the manager has no allocation")
    scene.node.kubectl("wait", "--for=jsonpath={.status.allocationCount}=0", f"acceleratornode/{NODE_NAME}", WAIT)
