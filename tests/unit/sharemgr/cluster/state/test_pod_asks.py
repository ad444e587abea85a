"""What a pod's containers ask for together."""

from typing import Any

import pytest

from edgeshare.contract.devices import Accelerator
from sharemgr.cluster.state.pods import SharePod, parse_pod
from sharemgr.cluster.state.request import Ask, Request

GPU, MEMORY, TPU = "edge/gpu-percent", "edge/gpu-memory-mib", "edge/tpu-percent"
EDGETPU = Accelerator.EDGETPU


def container(name: str, percent: int, memory_mib: int, **more: str) -> dict[str, Any]:
    limits = {"edge/gpu-percent": str(percent), "edge/gpu-memory-mib": str(memory_mib)}
    return {"name": name, "resources": {"limits": limits}, **more}


def test_containers_that_share_a_gpu_by_affinity_need_their_memory_together_whatever_an_init_container_needs() -> None:
    for init_mib, together_mib in ((100, 700), (900, 900)):
        pod = parse_pod(
            {
                "metadata": {"uid": "u", "name": "p", "labels": {"edge/gpu-affinity": "a"}},
                "spec": {
                    "initContainers": [
                        container("init", 5, init_mib),
                        container("beside", 10, 300, restartPolicy="Always"),
                    ],
                    "containers": [container("main", 20, 400)],
                },
            }
        )
        (ask,) = pod.request.asks
        assert (ask.units, ask.memory_mib) == (30, together_mib)


def asking(*limits: dict[str, str], init: dict[str, str] | None = None, **labels: str) -> SharePod:
    """A pod of containers that ask for so much."""
    each = [{"name": f"c{place}", "resources": {"limits": of}} for place, of in enumerate(limits)]
    before = [] if init is None else [{"name": "i", "resources": {"limits": init}}]
    named = {f"edge/gpu-{key}": text for key, text in labels.items()}
    metadata = {"uid": "u", "name": "p", "labels": named}
    return parse_pod({"metadata": metadata, "spec": {"initContainers": before, "containers": each}})


def test_a_container_asks_for_each_kind_of_device_by_itself_and_gpus_come_first() -> None:
    pod = asking({TPU: "30"}, {GPU: "200", MEMORY: "900", TPU: "60", "cpu": "1"}, {TPU: "0"}, {})
    assert pod.request.asks == (Ask(2, 100, 900), Ask(1, 30, kind=EDGETPU), Ask(1, 60, kind=EDGETPU))
    assert [[(each.name, each.kind) for each in containers] for containers in pod.containers] == [
        [("c1", "gpu")],
        [("c0", "edgetpu")],
        [("c1", "edgetpu")],
    ]


def test_a_request_parts_into_what_it_asks_of_each_kind() -> None:
    request = asking({GPU: "20", TPU: "100"}, {GPU: "30"}, affinity="a", exclusion="e").request
    assert request.parts == (request._replace(asks=(Ask(1, 50),)), Request((Ask(1, 100, kind=EDGETPU),)))
    assert [part.kind for part in request.parts] == [Accelerator.GPU, EDGETPU]
    of_gpus = asking({GPU: "20"}, affinity="a").request
    assert of_gpus.parts == (of_gpus,)
    # Models, affinity and exclusion are of GPUs.
    assert asking({TPU: "20"}, affinity="a").request.parts == (Request((Ask(1, 20, kind=EDGETPU),)),)
    assert asking({}).request.parts == ()


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        (asking({TPU: "150"}), "container c0: edge/tpu-percent: 150 percent cannot be granted"),
        (asking({TPU: "-5"}), "container c0: edge/tpu-percent"),
        (asking({GPU: "20", TPU: "half"}), "container c0: edge/tpu-percent is 'half': expected a whole number"),
        (asking({TPU: "1600"}, {TPU: "1"}), "ask for 1601 units in sum: no node has over 16 EdgeTPUs"),
        (asking(*[{TPU: "51"}] * 17), "its containers need 17 EdgeTPUs, because no two that ask for over 50 units"),
        (
            asking({TPU: "30"}, {TPU: "10"}, init={TPU: "60"}),
            "init container i asks for 60 units, and container c0, which takes them over, for 30",
        ),
    ],
)
def test_what_can_never_be_had_of_edgetpus_is_its_fault(pod: SharePod, said: str) -> None:
    assert said in pod.fault
    assert pod.request.asks == ()
    assert pod.asks


def test_what_was_parsed_for_a_pod_is_of_no_other_that_asks_for_something_else() -> None:
    of = {GPU: "20", MEMORY: "400"}
    requests = {"cpu": "2", "memory": "8Mi"}

    def parsed(limits: dict[str, Any] = of, name: str = "main", more: Any = None, **spec: Any) -> tuple[Any, ...]:
        main = {"name": name, "resources": {"limits": limits, "requests": more or requests}}
        pod = parse_pod({"metadata": {"uid": "u", "name": "p"}, "spec": {"containers": [main], **spec}})
        return pod.request.asks, pod.request.cpu_milli, pod.request.ram_mib, pod.containers, bool(pod.fault)

    first = parsed()
    assert first[:3] == ((Ask(1, 20, 400),), 2000, 8)
    others = [
        parsed({**of, GPU: "30"}),
        parsed({**of, MEMORY: "300"}),
        parsed({GPU: "20"}),
        parsed({**of, GPU: "1"}),
        parsed(name="other"),
        parsed(more={**requests, "cpu": "3"}),
        parsed(more={**requests, "memory": "9Mi"}),
        parsed(overhead={"cpu": "6"}),
        parsed(resources={"requests": {"cpu": "7"}}),
        parsed(initContainers=[container("init", 5, 100)]),
    ]
    assert len({first, *others}) == 1 + len(others)
    assert [each[-1] for each in others] == [False] * len(others)
    assert parsed({**of, GPU: 1})[0] == (Ask(1, 1, 400),)
    assert parsed({**of, GPU: True})[-1]
    assert parsed() == first
