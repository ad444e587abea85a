"""Pods of every shape on real kubelets: each of their containers gets the units that are its own."""

import os
import signal

import pytest

from deviceplugin.units.preference import by_device
from edgeshare.contract.names import GPU_PERCENT
from simgpu.machine import Machine
from tests.kit.onenode.installed.parts import Parts
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.executed import wait_until_executing
from tests.kit.onenode.pods.given import admitted, assert_all_agree, listed, percents, shares
from tests.kit.onenode.pods.pods import Pods, container, pod
from tests.kit.processes.waiting import until

pytestmark = pytest.mark.usefixtures("kubelet")

READY = "condition=Ready"
LONG, SHORT = ("--seconds", "600"), ("--seconds", "0.2")


def percent(units: int) -> dict[str, int]:
    """A container's limits."""
    return {GPU_PERCENT: units}


def units_of(pods: Pods, name: str) -> dict[str, frozenset[str]]:
    """Container → units of a pod, plain init containers too."""
    return admitted(pods.get(name, ".metadata.uid"))


def live(machine: Machine, tag: str) -> int:
    """How many processes of that name are there."""
    return sum(each.alive for each in machine.processes() if each.tag == tag)


def test_an_init_container_has_a_share_and_hands_its_units_on(node: Node, edgeshare: Machine, pods: Pods) -> None:
    warm = container("handed", "warm", *LONG, limits=percent(20))
    main = container("handed", "main", *LONG, limits=percent(40))
    pods.create(pod("handed", [main], init=[warm]))
    wait_until_executing(edgeshare, "handed/warm")
    assert percents("handed") == {"warm": 20}
    # Which ends it well, as an init container has to end.
    os.kill(node.container_pid(pods.container("handed", "warm")), signal.SIGTERM)
    pods.wait(READY, "handed")
    wait_until_executing(edgeshare, "handed")
    units = units_of(pods, "handed")
    assert units["warm"] < units["main"]
    assert len(by_device(units["main"])) == 1
    assert percents("handed") == {"main": 40}
    assert_all_agree("handed")


@pytest.mark.each_kubelet
def test_a_restartable_init_container_shares_with_the_init_container_and_not_with_the_app(
    node: Node, edgeshare: Machine, pods: Pods
) -> None:
    first = container("aided", "first", *SHORT, limits=percent(20))
    beside = container("aided", "beside", *LONG, limits=percent(20), restartPolicy="Always")
    main = container("aided", "main", *LONG, limits=percent(20))
    pods.create(pod("aided", [main], init=[first, beside]))
    pods.wait(READY, "aided")
    wait_until_executing(edgeshare, "aided", "aided/beside")
    units = units_of(pods, "aided")
    assert units["beside"] == units["first"]
    assert not units["beside"] & units["main"]
    assert_all_agree("aided")

    ended = pods.container("aided", "beside")
    node.kill_container(ended)
    until(lambda: pods.container("aided", "beside") not in ("", ended), "the restartable container is back")
    until(lambda: [len(each.clients) for each in shares("aided")] == [1, 1], "both containers' programs have joined")
    assert units_of(pods, "aided") == units
    assert_all_agree("aided")


def test_several_containers_of_a_pod_get_units_of_their_own(edgeshare: Machine, pods: Pods) -> None:
    asked = {"main": 40, "second": 30, "third": 50}
    made = [container("several", name, *LONG, limits=percent(units)) for name, units in asked.items()]
    made.append(container("several", "without", *LONG, limits={}))
    pods.create(pod("several", made))
    pods.wait(READY, "several")
    wait_until_executing(edgeshare, "several", "several/second", "several/third")
    units = units_of(pods, "several")
    assert {name: len(of) for name, of in units.items()} == asked
    assert {name: [pods.gpu("several", name)] for name in asked} == {name: [*by_device(units[name])] for name in asked}
    assert pods.gpu("several") == pods.gpu("several", "second") != pods.gpu("several", "third")
    assert_all_agree("several")


@pytest.mark.each_kubelet
def test_list_and_get_agree_with_plugin_and_manager_of_parts_and_whole_gpus(pods: Pods) -> None:
    asked = {"main": 5, "second": 95}
    parts = [container("parts", name, *LONG, limits=percent(units)) for name, units in asked.items()]
    pods.create(pod("whole", [container("whole", "main", *LONG, limits=percent(100))]), pod("parts", parts))
    pods.wait(READY, "whole", "parts")
    assert {held: len(units) for held, units in listed().items()} == {
        ("whole", "main"): 100,
        ("parts", "main"): 5,
        ("parts", "second"): 95,
    }
    assert_all_agree("whole", "parts")


def test_a_pod_deleted_while_the_kubelet_was_down_gives_its_units_back(
    node: Node, edgeshare: Machine, parts: Parts, pods: Pods
) -> None:
    for name in ("orphan", "stays"):
        pods.start(name, *LONG, limits=percent(100))
    pods.wait(READY, "orphan", "stays")
    freed, life = pods.gpu("orphan"), parts.life()
    with node.kubelet_down():
        pods.delete_by_force("orphan")
        assert live(edgeshare, "orphan") == 1
    parts.until_registered_after(life)
    until(lambda: not live(edgeshare, "orphan"), "its program has ended")
    until(lambda: not percents("orphan"), "the manager knows it no more")
    pods.start("next", *LONG, limits=percent(100))
    pods.wait(READY, "next")
    assert pods.gpu("next") == freed
    assert_all_agree("next", "stays")


def test_a_pod_made_anew_under_its_name_while_the_old_one_ends_gets_a_share_of_its_own(
    node: Node, edgeshare: Machine, pods: Pods
) -> None:
    pods.start("twin", *LONG, limits=percent(60))
    pods.wait(READY, "twin")
    (old,) = shares("twin")
    # Stopped, it hears of no SIGTERM and ends with its grace time.
    os.kill(node.container_pid(pods.container("twin")), signal.SIGSTOP)
    pods.delete_by_force("twin")
    pods.start("twin", *LONG, limits=percent(60))
    pods.wait(READY, "twin")
    uid = pods.get("twin", ".metadata.uid")
    assert uid != old.allocation.owner.pod_uid

    def only_the_new_one() -> bool:
        return [(each.allocation.owner.pod_uid, len(each.clients)) for each in shares("twin")] == [(uid, 1)]

    until(only_the_new_one, "the manager has the new pod's share alone, and its program")
    assert shares("twin")[0].allocation.id != old.allocation.id
    until(lambda: live(edgeshare, "twin") == 1, "the old one's program has ended")
    assert_all_agree("twin")
