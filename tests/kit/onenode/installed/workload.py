"""What the node's pods run: simgpu's CUDA client, or its EdgeTPU's, in an image that has the simulated drivers."""

from pathlib import Path

from tests.kit.onenode.images import PROJECT, client_image
from tests.kit.onenode.node import Node
from tests.kit.processes.errors import NodeError

NAME = "localhost/edgeshare-burn:1"
# The driver lies where the loader looks by itself, as it does where a container runtime puts NVIDIA's.
FILES = {
    "/usr/bin/burn": "simgpu/bin/burn",
    "/usr/lib/libcuda.so.1": "simgpu/lib/libcuda.so.1",
    "/usr/bin/tpuburn": "simgpu/bin/tpuburn",
    "/usr/lib/libsimtpu.so": "simgpu/lib/libsimtpu.so",
}
# The pods of this manifest use that image.
EXAMPLE = PROJECT / "deploy/examples/three-shares.yaml"
SHARES = {"half": 50, "third": 30, "fifth": 20}  # the example's


def workload_image(folder: Path) -> Path:
    """An archive of the image, made of this tree's programs. Raises NodeError where they are not built."""
    files = {inside: PROJECT / local for inside, local in FILES.items()}
    if unbuilt := [str(path) for path in files.values() if not path.exists()]:
        raise NodeError(f"not built yet: {', '.join(unbuilt)}: run `make build`")
    return client_image(folder, NAME, files, ["/usr/bin/burn"])


def example_containers(node: Node) -> str:
    """The ids of the example's containers: others, when one of them was started again."""
    ids = "jsonpath={.items[*].status.containerStatuses[0].containerID}"
    return node.kubectl("get", "-f", str(EXAMPLE), "-o", ids)
