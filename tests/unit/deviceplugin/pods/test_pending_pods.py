from typing import Any

from deviceplugin.pods.pending_pods import (
    BoundPod,
    allocated,
    applicants,
    is_past,
    may_have,
    reserved_mib,
    reserved_units,
)
from deviceplugin.pods.pod_spec import asking_containers, slim
from deviceplugin.units.ledger import Allocation, Owner
from edgeshare.contract.accelerator_kind import EDGETPU, GPU
from edgeshare.contract.devices import Device
from edgeshare.contract.units import unit_id


def pod(
    containers: dict[str, int | str], init: dict[str, int] | None = None, assignment: str | None = None, **more: Any
) -> BoundPod:
    def described(sizes: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {"name": name, "resources": {"limits": {"edge/gpu-percent": str(size)}}} for name, size in sizes.items()
        ]

    json = {
        "metadata": {"namespace": "team", "name": "trainer", "uid": "u1"},
        "spec": {"containers": described(containers), "initContainers": described(init or {})},
        **more,
    }
    return BoundPod(json, assignment)


def nobody(owner: Owner) -> bool:
    return False


def having(*names: str) -> Any:
    owners = [Owner("team", "trainer", name, "u1") for name in names]
    return allocated(Allocation(owner.container, frozenset({unit_id("a", 0)}), "", owner) for owner in owners)


def test_a_pod_may_have_units_of_nobody_while_it_lacks_as_many() -> None:
    assert may_have(pod({"main": 30}), 30, nobody)
    assert not may_have(pod({"main": 30}), 20, nobody)
    assert not may_have(pod({"main": 30}), 30, having("main"))
    assert may_have(pod({"main": 30, "side": 30}), 30, having("side"))


def test_a_pod_that_is_over_has_no_units() -> None:
    assert not may_have(pod({"main": 30}, status={"phase": "Failed"}), 30, nobody)


def test_an_init_container_may_have_units_that_no_later_container_of_the_same_size_has() -> None:
    assert may_have(pod({"main": 0}, {"fetch": 30}), 30, nobody)
    assert may_have(pod({"main": 20}, {"fetch": 30}), 30, having("main"))
    assert not may_have(pod({"main": 30}, {"fetch": 30}), 30, having("main"))
    # The next container takes them over, which may not be known yet.
    assert may_have(pod({"main": 30}, {"fetch": 30}), 30, having("fetch"))


def test_slim_keeps_what_is_asked_of_a_pod_and_nothing_else() -> None:
    full = {
        "metadata": {
            "namespace": "team",
            "name": "trainer",
            "uid": "u1",
            "managedFields": [{"manager": "kubectl"}],
            "annotations": {"edge/share-class": "latency", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
        },
        "spec": {
            "nodeName": "n1",
            "volumes": [{"name": "token"}],
            "initContainers": [{"name": "side", "restartPolicy": "Always", "image": "none"}],
            "containers": [{"name": "main", "env": [], "resources": {"limits": {"cpu": "1", "edge/gpu-percent": "5"}}}],
        },
        "status": {"phase": "Running", "conditions": []},
    }
    assert slim(full) == {
        "metadata": {
            "namespace": "team",
            "name": "trainer",
            "uid": "u1",
            "annotations": {"edge/share-class": "latency"},
        },
        "spec": {
            "nodeName": "n1",
            "initContainers": [{"name": "side", "resources": {"limits": {}}, "restartPolicy": "Always"}],
            "containers": [{"name": "main", "resources": {"limits": {"edge/gpu-percent": "5"}}}],
        },
        "status": {"phase": "Running"},
    }


def test_containers_that_ask_are_told_in_the_order_of_their_admission() -> None:
    it = pod({"main": 30, "odd": "many", "plain": 0}, {"fetch": 20, "side": 10})
    it.json["spec"]["initContainers"][1]["restartPolicy"] = "Always"
    assert asking_containers(it.json) == [("fetch", 20, False), ("side", 10, True), ("main", 30, True)]


def test_applicants_are_the_containers_after_the_last_that_has_units() -> None:
    it = pod({"one": 30, "two": 30}, {"fetch": 30})
    assert [each.owner.container for each in applicants(it, nobody)] == ["fetch", "one", "two"]
    # The units of the first were taken over by the second, so only that one is known to have any.
    assert [each.owner.container for each in applicants(it, having("one"))] == ["two"]
    assert applicants(it, having("one", "two")) == []


def test_nobody_waits_in_a_pod_that_is_over_or_failed_at_its_admission() -> None:
    assert applicants(pod({"main": 30}, status={"phase": "Failed"}), nobody) == []
    refused = pod({"main": 30})
    refused.ended = True
    assert applicants(refused, nobody) == []


def test_assignment_is_that_of_the_binding() -> None:
    it = pod({"main": 30}, assignment='{"main":["GPU-a"]}')
    it.json["metadata"]["annotations"] = {"edge/gpu-assignment": '{"main":["GPU-b"]}'}
    (one,) = applicants(it, nobody)
    assert (one.devices, one.fault, one.is_assigned) == (("GPU-a",), "", True)
    assert it.edited == '{"main":["GPU-b"]}'


def test_each_kind_has_what_is_assigned_of_it_and_one_that_is_not_named_is_the_nodes_to_choose() -> None:
    it = pod({"main": 30})
    it.json["spec"]["containers"][0]["resources"]["limits"]["edge/tpu-percent"] = "40"
    for assignment, gpus, tpus in (
        ('{"main":{"edge/gpu-percent":["GPU-a"],"edge/tpu-percent":["2-1.4"]}}', ("GPU-a",), ("2-1.4",)),
        ('{"main":["GPU-a"]}', ("GPU-a",), None),
        ('{"main":{"edge/tpu-percent":["2-1.4"]}}', None, ("2-1.4",)),
    ):
        it.bound = assignment
        for kind, devices in ((GPU, gpus), (EDGETPU, tpus)):
            (one,) = applicants(it, nobody, kind)
            assert (one.devices, one.fault, one.is_assigned) == (devices, "", devices is not None)
    it.bound = '{"main":["GPU-a"],"side":{"edge/tpu-percent":["2-1.4"]}}'
    (odd,) = applicants(it, nobody, EDGETPU)
    assert "names no EdgeTPU for container main" in odd.fault


def test_garbage_is_a_fault_and_none_is_no_assignment() -> None:
    (odd,) = applicants(pod({"main": 30}, assignment="{"), nobody)
    assert odd.devices is None
    assert odd.fault.startswith("team/trainer/main: annotation edge/gpu-assignment is no JSON")
    assert odd.is_assigned
    (free,) = applicants(pod({"main": 30}), nobody)
    assert (free.devices, free.is_assigned) == (None, False)


def test_a_pod_of_the_same_name_is_told_by_units_of_which_the_kubelet_knows_nothing() -> None:
    it = pod({"main": 30})
    listing = {("team", "trainer"): {"main": frozenset[str]()}}
    assert not is_past(it, listing, nobody)
    assert is_past(it, listing, having("main"))
    assert not is_past(it, {("team", "trainer"): {"main": frozenset({unit_id("a", 0)})}}, having("main"))


def test_what_waits_reserves_units_and_memory_of_its_devices() -> None:
    first = pod({"one": 30, "two": 20}, {"fetch": 40}, '{"one":["a"],"two":["a"],"fetch":["a"]}')
    second = pod({"main": 200}, assignment='{"main":["b","c"]}')
    second.json["metadata"]["uid"] = "u2"
    waiting = [*applicants(first, nobody), *applicants(second, nobody)]
    # Its init container runs before the others, which take over its units.
    assert reserved_units(waiting) == {"a": 50, "b": 100, "c": 100}
    devices = {name: Device(name, index, "Simulated", 10_000) for index, name in enumerate("ab")}
    assert reserved_mib(waiting, devices) == {"a": 5000, "b": 10_000, "c": 0}


def test_an_init_container_runs_beside_the_sidecars_before_it() -> None:
    it = pod(
        {"main": 20}, {"side": 10, "fetch": 40, "late": 30}, '{"main":["a"],"side":["a"],"fetch":["a"],"late":["a"]}'
    )
    for place in (0, 2):
        it.json["spec"]["initContainers"][place]["restartPolicy"] = "Always"
    assert reserved_units(applicants(it, nobody)) == {"a": 60}
    it.json["spec"]["initContainers"][2]["resources"]["limits"] = {}
    assert reserved_units(applicants(it, nobody)) == {"a": 50}
    # It has units already: those are nobody's to reserve.
    assert reserved_units(applicants(it, having("side"))) == {"a": 40}


def test_an_assignment_names_gpus_and_says_nothing_of_edgetpus() -> None:
    both = pod({"main": 40}, assignment='{"main":["a"]}')
    both.json["spec"]["containers"][0]["resources"]["limits"]["edge/tpu-percent"] = "30"
    (of_gpu,), (of_tpu,) = (applicants(both, nobody, kind) for kind in (GPU, EDGETPU))
    assert (of_gpu.percent, of_gpu.devices) == (40, ("a",))
    assert (of_tpu.percent, of_tpu.devices, of_tpu.is_assigned) == (30, None, False)
