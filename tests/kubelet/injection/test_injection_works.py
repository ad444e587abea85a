"""What the plugin answers, mounted as a container runtime does it, makes a program a client of the manager."""

import asyncio
import os
import shlex
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as api
from edgeshare.v1.status_pb2 import AllocationStatus, GetNodeStatusRequest
from edgeshare.v1.status_pb2_grpc import ShareStatusStub
from simgpu.environment import variables
from simgpu.native import LIBRARIES
from tests.kit.kubelet.node_under_test import UUIDS, Node
from tests.kit.kubelet.pod import Pod

SAFETY_S = 60
NOBODY = 65534

NAMESPACE = """set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /mnt
for folder in /etc /usr/lib; do
    mkdir -p /mnt/upper$folder /mnt/work$folder
    mount -t overlay overlay -o lowerdir=$folder,upperdir=/mnt/upper$folder,workdir=/mnt/work$folder $folder
done
mount -t tmpfs tmpfs /run
"""
"""A container's own layer over what it must not change on this machine."""


def container_script(answer: api.ContainerAllocateResponse, command: list[str], user: int) -> str:
    """A shell script that runs a command as this user, without capabilities, with the answer's mounts."""
    script = NAMESPACE
    # The preload file last: a runtime starts no program between two mounts, this does.
    for mount in sorted(answer.mounts, key=lambda mount: mount.container_path == "/etc/ld.so.preload"):
        inside, outside = shlex.quote(mount.container_path), shlex.quote(mount.host_path)
        make = "mkdir -p" if Path(mount.host_path).is_dir() else "install -D -m 644 /dev/null"
        script += f"{make} {inside}; mount --bind {outside} {inside}\n"
        if mount.read_only:
            script += f"mount -o remount,bind,ro {inside}\n"
    drop = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--bounding-set=-all"]
    # Only now: what makes the container must not load its library.
    variables = [f"{name}={value}" for name, value in answer.envs.items()]
    return script + f"exec {shlex.join(['env', *variables, *drop, *command])}\n"


@pytest.fixture(scope="module", autouse=True)
def mounts() -> None:
    """Skips where this user cannot mount."""
    tried = subprocess.run(["unshare", "--mount", "sh", "-c", NAMESPACE], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"cannot mount here: {tried.stderr.strip()}")


@asynccontextmanager
async def container(
    node: Node, answer: api.ContainerAllocateResponse, command: list[str], user: int = NOBODY
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Runs a command as in a container of the node. Like this folder's other programs it may take its time."""
    for path in [node.root, node.machine_dir, *node.machine_dir.rglob("*")]:
        path.chmod(0o777)
    process = await asyncio.create_subprocess_exec(
        *["unshare", "--mount", "sh", "-c", container_script(answer, command, user)],
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.defpath, "EDGESHARE_HOOK_LOG": "info"},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def on_the_machine(node: Node, *command: str) -> list[str]:
    """The command, finding the simulated GPUs; the loader must not look there before, in the shell."""
    return ["env", *(f"{name}={value}" for name, value in variables(node.machine_dir, {}).items()), *command]


async def status(node: Node) -> list[AllocationStatus]:
    async with grpc.aio.insecure_channel(f"unix:{node.runtime_dir / 'status.sock'}") as channel:
        return list((await ShareStatusStub(channel).GetNodeStatus(GetNodeStatusRequest())).allocations)


async def test_a_program_of_any_user_becomes_a_client_through_read_only_mounts(ready: Node) -> None:
    await ready.kubelet.run(Pod("elsewhere", {"main": 60}))
    answer = (await ready.kubelet.run(Pod("trainer", {"main": 50})))["main"]
    burn = on_the_machine(ready, str(LIBRARIES.parent / "bin/burn"), "--seconds", "20")
    async with container(ready, answer, burn) as process, asyncio.timeout(SAFETY_S):
        while True:
            clients = {each.allocation.owner.pod: len(each.clients) for each in await status(ready)}
            # It is a client before it runs anything.
            if clients == {"elsewhere": 0, "trainer": 1} and sum(ready.machine.executed_ns(1).values()) > 0:
                break
            if process.returncode is not None:
                pytest.fail(f"ended with {process.returncode}: {await process.communicate()}")
            await asyncio.sleep(0.1)
        # It sees the GPU that it was given alone, and there it runs.
        assert sum(ready.machine.executed_ns(0).values()) == 0
        assert answer.envs["NVIDIA_VISIBLE_DEVICES"] == UUIDS[1]


@pytest.mark.parametrize(("size", "loaded"), [(50, True), (100, False)])
async def test_every_program_of_a_shared_container_loads_the_library_and_no_other_does(
    ready: Node, size: int, loaded: bool
) -> None:
    answer = (await ready.kubelet.run(Pod("trainer", {"main": size})))["main"]
    assert "LD_PRELOAD" not in answer.envs
    async with container(ready, answer, ["sh", "-c", "cat /proc/self/maps"]) as process:
        out, err = await process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert (b"/usr/lib/edgeshare/" in out) == loaded


async def test_a_container_whose_user_is_root_cannot_change_what_was_mounted_into_it(ready: Node) -> None:
    answer = (await ready.kubelet.run(Pod("trainer", {"main": 50})))["main"]
    library = next(m.container_path for m in answer.mounts if m.container_path.startswith("/usr/lib"))
    attempts = f"""
for file in /etc/ld.so.preload {library} /run/edgeshare/hook.conf; do
    ! (echo x >>$file) 2>/dev/null || exit 1
done
! rm -f /run/edgeshare/hook.sock 2>/dev/null
"""
    async with container(ready, answer, ["sh", "-c", attempts], user=0) as process:
        await process.communicate()
    assert process.returncode == 0
