"""With CDI the kubelet is told names, and the spec that a runtime looks them up in is there when a container starts."""

import json
import signal
from pathlib import Path

import pytest

from tests.kit.kubelet.node_under_test import UUIDS, Node
from tests.kit.kubelet.pod import AdmissionError, Pod

BY_CDI = {"devices": "cdi"}


@pytest.fixture
async def by_cdi(node: Node) -> Node:
    """A node whose containers get their devices by CDI."""
    await node.start_manager()
    await node.start_plugin(injection=BY_CDI)
    await node.kubelet.until(healthy=200)
    return node


def spec_file(node: Node) -> Path:
    return node.root / "cdi/edge-gpu.json"


def names(node: Node) -> set[str]:
    """The devices that a runtime finds."""
    spec = json.loads(spec_file(node).read_text())
    return {f"{spec['kind']}={device['name']}" for device in spec["devices"]}


async def test_a_container_gets_names_that_the_spec_has(by_cdi: Node) -> None:
    answer = (await by_cdi.kubelet.run(Pod("part", {"main": 50})))["main"]
    assert [each.name for each in answer.cdi_devices] == [f"edge/gpu={answer.envs['NVIDIA_VISIBLE_DEVICES']}"]
    assert not answer.devices
    assert names(by_cdi) == {f"edge/gpu={uuid}" for uuid in UUIDS}


async def test_whole_gpus_are_named_all_of_them(by_cdi: Node) -> None:
    answer = (await by_cdi.kubelet.run(Pod("whole", {"main": 200})))["main"]
    assert {each.name for each in answer.cdi_devices} == names(by_cdi)


async def test_a_spec_that_went_missing_is_there_again_when_a_container_starts(by_cdi: Node) -> None:
    pod = Pod("trainer", {"main": 50})
    await by_cdi.kubelet.run(pod)
    before = spec_file(by_cdi).read_bytes()
    # As after a boot: the folder is on a file system in memory.
    spec_file(by_cdi).unlink()
    spec_file(by_cdi).parent.rmdir()
    await by_cdi.kubelet.start_container(pod, "main")
    assert spec_file(by_cdi).read_bytes() == before


async def test_the_spec_is_there_before_the_plugin_registers_and_stays_when_it_ends(by_cdi: Node) -> None:
    await by_cdi.stop_plugin(signal.SIGTERM)
    # Containers that run may be looked up again before the next plugin is there.
    assert spec_file(by_cdi).exists()
    spec_file(by_cdi).unlink()
    await by_cdi.start_plugin(injection=BY_CDI)
    await by_cdi.kubelet.until(registrations=2)
    assert spec_file(by_cdi).exists()


async def test_a_changed_configuration_holds_for_new_containers_and_the_others_find_their_names(by_cdi: Node) -> None:
    before, after = Pod("before", {"main": 50}), Pod("after", {"main": 50})
    named = await by_cdi.kubelet.run(before)
    by_cdi.configure()
    await by_cdi.until_said("config 'default' of")
    answer = (await by_cdi.kubelet.run(after))["main"]
    assert not answer.cdi_devices
    spec_file(by_cdi).unlink()
    assert {"main": await by_cdi.kubelet.start_container(before, "main")} == named
    assert named["main"].cdi_devices[0].name in names(by_cdi)
    by_cdi.kubelet.end(before)
    await by_cdi.until_allocations_are("after/main")


async def test_a_spec_that_cannot_be_written_is_said_with_what_it_needs_and_refuses_who_would_need_it(
    node: Node,
) -> None:
    (node.root / "cdi").touch()
    await node.start_manager()
    await node.start_plugin(injection=BY_CDI)
    await node.kubelet.until(healthy=200)
    await node.until_said("the CDI spec of edge/gpu cannot be written")
    with pytest.raises(AdmissionError, match=r"the CDI spec of edge/gpu cannot be written: .*writable \(cdi_dir\)"):
        await node.kubelet.run(Pod("trainer", {"main": 50}))
    node.configure()
    await node.until_said("config 'default' of")
    assert not (await node.kubelet.run(Pod("trainer", {"main": 50})))["main"].cdi_devices
