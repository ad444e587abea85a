"""What the node's pods run: simgpu's CUDA client, in an image that has the simulated driver."""

from pathlib import Path

from onenode.errors import NodeError
from onenode.images import PROJECT, client_image

NAME = "localhost/edgeshare-burn:1"
# The driver lies where the loader looks by itself, as it does where a container runtime puts NVIDIA's.
FILES = {"/usr/bin/burn": "simgpu/bin/burn", "/usr/lib/libcuda.so.1": "simgpu/lib/libcuda.so.1"}
# The pods of this manifest use that image.
EXAMPLE = PROJECT / "deploy/examples/three-shares.yaml"


def workload_image(folder: Path) -> Path:
    """An archive of the image, made of this tree's programs. Raises NodeError where they are not built."""
    files = {inside: PROJECT / local for inside, local in FILES.items()}
    if unbuilt := [str(path) for path in files.values() if not path.exists()]:
        raise NodeError(f"not built yet: {', '.join(unbuilt)}: run `make build`")
    return client_image(folder, NAME, files, ["/usr/bin/burn"])
