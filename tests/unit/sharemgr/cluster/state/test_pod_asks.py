"""What a pod's containers ask for together."""

from typing import Any

from sharemgr.cluster.state.pods import parse_pod


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
