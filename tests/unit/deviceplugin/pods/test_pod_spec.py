from typing import Any

import pytest

from deviceplugin.pods.pod_spec import asking_containers, asks_later, init_container, is_over, parse_terms, slim
from deviceplugin.units.ledger import Terms
from edgeshare.contract.accelerator_kind import EDGETPU, GPU
from edgeshare.contract.errors import InvalidRequest


def pod(
    limits: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    init: list[dict[str, Any]] | None = None,
    phase: str = "Pending",
) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "team", "name": "trainer", "uid": "u1", "annotations": annotations},
        "spec": {"containers": [container("main", limits)], "initContainers": init or []},
        "status": {"phase": phase},
    }


def container(name: str, limits: dict[str, str] | None, **more: str) -> dict[str, Any]:
    return {"name": name, "resources": {"limits": limits} if limits else {}, **more}


def test_a_plain_request_gets_the_defaults() -> None:
    assert parse_terms(pod({"edge/gpu-percent": "30"}), "main", 30) == Terms(30)


def test_all_that_can_be_asked_for_is_taken_over() -> None:
    asked = pod(
        {"edge/gpu-percent": "30", "edge/gpu-memory-mib": "2k"},
        {"edge/gpu-percent-limit": "60", "edge/share-class": "latency"},
    )
    assert parse_terms(asked, "main", 30) == Terms(30, 60, "latency", 2000)


def test_whole_devices_without_a_cap_have_no_hook() -> None:
    assert parse_terms(pod({"edge/gpu-percent": "200"}), "main", 200) == Terms(100, hooked=False)


def test_whole_devices_with_a_cap_have_the_hook() -> None:
    asked = pod({"edge/gpu-percent": "100", "edge/gpu-memory-mib": "4Ki"})
    assert parse_terms(asked, "main", 100) == Terms(100, memory_mib=4096)


def test_a_limit_says_nothing_of_whole_devices() -> None:
    asked = pod({"edge/gpu-percent": "100"}, {"edge/gpu-percent-limit": "60"})
    assert parse_terms(asked, "main", 100).limit_percent == 0


@pytest.mark.parametrize(
    ("limits", "annotations", "text"),
    [
        ({"edge/gpu-percent": "50"}, {}, "asks for 50 of edge/gpu-percent, but the kubelet gave it 30"),
        ({"edge/gpu-percent": "lots"}, {}, "edge/gpu-percent is 'lots': expected a whole number"),
        ({"edge/gpu-percent": "30", "edge/gpu-memory-mib": "0"}, {}, "edge/gpu-memory-mib is 0"),
        ({"edge/gpu-percent": "30", "edge/gpu-memory-mib": "1.5"}, {}, "edge/gpu-memory-mib is '1.5'"),
        ({"edge/gpu-percent": "30", "edge/gpu-memory-mib": "9E"}, {}, "edge/gpu-memory-mib is 9"),
        (
            {"edge/gpu-percent": "30"},
            {"edge/gpu-percent-limit": "29"},
            "edge/gpu-percent-limit: a limit of 29",
        ),
        (
            {"edge/gpu-percent": "30"},
            {"edge/gpu-percent-limit": "101"},
            "edge/gpu-percent-limit: a limit of 101",
        ),
        ({"edge/gpu-percent": "30"}, {"edge/gpu-percent-limit": "60%"}, "edge/gpu-percent-limit is '60%'"),
        ({"edge/gpu-percent": "30"}, {"edge/gpu-percent-limit": ""}, "edge/gpu-percent-limit is ''"),
        ({"edge/gpu-percent": "30"}, {"edge/gpu-percent-limit": "٣٠"}, "edge/gpu-percent-limit is"),
        ({"edge/gpu-percent": "30"}, {"edge/share-class": "Latency"}, "edge/share-class is 'Latency'"),
    ],
)
def test_a_wrong_value_is_refused_by_name(limits: dict[str, str], annotations: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_terms(pod(limits, annotations), "main", 30)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_container_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no container side"):
        parse_terms(pod({"edge/gpu-percent": "30"}), "side", 30)


def test_a_sidecar_is_not_taken_for_a_plain_init_container() -> None:
    sidecar = container("proxy", {"edge/gpu-percent": "30"}, restartPolicy="Always")
    plain = container("fetch", {"edge/gpu-percent": "30"})
    assert init_container(pod(init=[sidecar]), 30) is None
    assert asks_later(pod(init=[sidecar]))
    assert init_container(pod(init=[sidecar, plain]), 30) == "fetch"
    assert not asks_later(pod(init=[plain]))


def test_a_pod_is_over_when_it_ended_or_another_one_has_its_name() -> None:
    assert is_over(None, "u1")
    assert is_over(pod(), "u0")
    assert is_over(pod(phase="Succeeded"), "u1")
    assert not is_over(pod(phase="Running"), "u1")
    assert not is_over(pod(phase="Running"), "")


@pytest.mark.parametrize(
    ("gpus", "tpus", "hooked"), [("40", "30", True), ("100", "30", True), ("30", "200", True), ("100", "200", False)]
)
def test_a_container_with_both_asks_for_each_by_itself_and_has_the_hook_for_a_part_of_any(
    gpus: str, tpus: str, hooked: bool
) -> None:
    asked = pod({"edge/gpu-percent": gpus, "edge/tpu-percent": tpus})
    of_gpu, of_tpu = (parse_terms(asked, "main", int(size), kind) for size, kind in ((gpus, GPU), (tpus, EDGETPU)))
    assert (of_gpu.hooked, of_tpu.hooked) == (hooked, hooked)
    assert (of_gpu.request_percent, of_tpu.request_percent) == (min(int(gpus), 100), min(int(tpus), 100))


def test_a_cap_on_memory_is_of_the_gpus_alone() -> None:
    asked = pod({"edge/gpu-percent": "100", "edge/gpu-memory-mib": "4Ki", "edge/tpu-percent": "30"})
    assert parse_terms(asked, "main", 30, EDGETPU) == Terms(30)


def test_who_asks_for_an_edgetpu_is_not_found_among_those_who_ask_for_a_gpu() -> None:
    asked = slim(pod({"edge/tpu-percent": "30"}))
    assert asking_containers(asked, GPU) == []
    assert asking_containers(asked, EDGETPU) == [("main", 30, True)]
