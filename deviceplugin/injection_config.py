"""What can be set about how a container gets its devices and the hook."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

OUR_VENDOR = "edge"
OUR_GPU_KIND = f"{OUR_VENDOR}/gpu"
"""Not NVIDIA's own ``nvidia.com/gpu``: its toolkit writes a spec of that kind, with the GPUs' UUIDs as names, into the
same folder, and a device that two specs there name is refused (CDI's SPEC.md, "Error Handling")."""


class Injection(BaseModel):
    """How a container gets its devices and the hook. One that is there keeps what it was made with."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    devices: Literal["envvar", "device-nodes", "cdi"] = "device-nodes"
    """``envvar``: NVIDIA_VISIBLE_DEVICES alone, for NVIDIA's container runtime to do the rest. ``device-nodes``: the
    device nodes too. ``cdi``: names of the Container Device Interface."""

    cdi_gpu_kind: Annotated[
        str, Field(max_length=253, pattern=r"^[A-Za-z][A-Za-z0-9._-]*/[A-Za-z][A-Za-z0-9._-]*$")
    ] = OUR_GPU_KIND
    """``edge/gpu``: by the spec that is written here. Another kind, such as nvidia.com/gpu: by somebody else's spec, in
    which the GPUs' names are their UUIDs."""
