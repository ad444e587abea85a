"""One simulated node: its GPUs, its share manager and its device plugin as real processes, and a scripted kubelet."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import grpc
import yaml

from edgeshare.kubelet.v1beta1.deviceplugin_pb2 import ContainerAllocateResponse
from edgeshare.v1.allocations_pb2 import Allocation, ListAllocationsRequest
from edgeshare.v1.allocations_pb2_grpc import AllocationsStub
from simgpu.create import create, destroy
from simgpu.environment import variables
from simgpu.machine import Machine
from simgpu.native import BURN
from tests.kit.kubelet.scripted_kubelet import ScriptedKubelet
from tests.kit.processes import forked
from tests.kit.processes.waiting import until_true

UUIDS = ("GPU-00000000-0000-0000-0000-00000000000b", "GPU-00000000-0000-0000-0000-00000000000a")
"""By index; not in the order of their names."""
SECOND, FIRST = sorted(UUIDS)
"""FIRST is the GPU that the plugin takes by itself."""

MEMORY_MIB = 16_000
SAFETY_S = 60  # the plugin itself waits 30 until it believes that a pod is over, where nobody else says so


class Node:
    """Everything lies below ``root``, whose path has to be short: sockets are in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.runtime_dir = root / "run"
        self.state_dir = root / "state"
        self.machine_dir = root / "machine"
        self.kubelet = ScriptedKubelet(root / "kubelet")
        self.plugin: forked.Forked | None = None
        self.manager: forked.Forked | None = None
        self._started: list[forked.Forked] = []
        self._configs = 0
        create(self.machine_dir, memory_mib=MEMORY_MIB, uuids=UUIDS)

    def simulate(self, **plan: Any) -> None:
        """Has another machine from now on; arguments are those of ``simgpu.create.create``."""
        destroy(self.machine_dir)
        create(self.machine_dir, **{"memory_mib": MEMORY_MIB, "uuids": UUIDS, **plan})

    @property
    def machine(self) -> Machine:
        """Where faults are injected."""
        return Machine(self.machine_dir)

    async def close(self) -> None:
        """Ends what runs."""
        for process in self._started:
            process.kill()
            process.communicate()
        await self.kubelet.stop()
        if self.plugin_log.exists():
            # For whoever reads why a test failed: pytest shows it then.
            print(self.plugin_log.read_text())
        destroy(self.machine_dir)

    async def start_manager(self, **config: Any) -> None:
        """Returns when it serves."""
        path = self.root / "sharemgr.yaml"
        path.write_text(yaml.safe_dump(config))
        command = ["sharemgr", "node", "--runtime-dir", str(self.runtime_dir), "--state-dir", str(self.root / "shares")]
        command += ["--config", str(path)]
        with (self.root / "manager.log").open("ab") as log:
            self.manager = forked.start(command, self._environment(), log)
        self._started.append(self.manager)
        assert self.manager.stdout is not None
        line = await asyncio.to_thread(self.manager.stdout.readline)
        assert "ready" in line, (self.root / "manager.log").read_text()

    async def start_plugin(
        self, driver: bool = True, program: Sequence[str] = (forked.COMMAND,), **config: Any
    ) -> forked.Forked:
        """Does not wait: the kubelet tells when it is there. ``program`` is run in the place of the command."""
        self.configure(**config)
        command = ["deviceplugin", "--config", str(self.config), "--kubelet-dir", str(self.root / "kubelet")]
        command += ["--runtime-dir", str(self.runtime_dir), "--state-dir", str(self.state_dir)]
        with self.plugin_log.open("ab") as log:
            self.plugin = forked.start(command, self._environment(driver), log, log, program)
        self._started.append(self.plugin)
        return self.plugin

    @property
    def config(self) -> Path:
        """The plugin's configuration, as a mounted ConfigMap has it."""
        return self.root / "config/deviceplugin.yaml"

    @property
    def with_api(self) -> dict[str, str]:
        """Of the plugin's configuration: an API server that knows this node."""
        return {"kubeconfig": str(self.root / "kubeconfig"), "node_name": "n1"}

    def configure(self, text: str | None = None, **config: Any) -> None:
        """Exchanges the configuration as the kubelet does with a ConfigMap: all of it at once, by a link."""
        if text is None:
            # What other tests make on this machine meanwhile is not this node's.
            own = {"node_dev": str(self.machine_dir / "dev"), "cdi_dir": str(self.root / "cdi")}
            text = yaml.safe_dump({"rescan_s": 0.1, "compare_s": 0.2, **own, **config})
        self._configs += 1
        fresh = self.config.parent / f"..{self._configs}"
        fresh.mkdir(parents=True)
        (fresh / self.config.name).write_text(text)
        link = self.config.parent / "..data_tmp"
        link.symlink_to(fresh.name)
        link.rename(self.config.parent / "..data")
        if not self.config.is_symlink():
            self.config.symlink_to(f"..data/{self.config.name}")

    async def page(self, path: str) -> tuple[int, str]:
        """Status and text of one of the plugin's pages; it has to be started with a ``metrics_address``."""
        await self.until_said("metrics at http://")
        (address,) = re.findall(r"metrics at (http://\S+)/metrics", self.plugin_log.read_text())[-1:]

        def get() -> tuple[int, str]:
            try:
                with urlopen(address + path, timeout=SAFETY_S) as answer:
                    return answer.status, answer.read().decode()
            except HTTPError as error:
                with error:
                    return error.code, error.read().decode()

        return await asyncio.to_thread(get)

    async def stop_plugin(self, number: signal.Signals) -> int:
        """Ends the plugin; returns its exit status."""
        assert self.plugin is not None
        self.plugin.send_signal(number)
        return await ended(self.plugin)

    async def stop_manager(self) -> None:
        """Ends the manager; what it knows lies on disk."""
        assert self.manager is not None
        self.manager.terminate()
        await ended(self.manager)

    @property
    def plugin_log(self) -> Path:
        """What the plugin said."""
        return self.root / "deviceplugin.log"

    def own_sockets(self) -> list[str]:
        """The plugin's sockets in the kubelet's folder."""
        return sorted(path.name for path in self.kubelet.folder.glob("edgeshare-*"))

    async def allocations(self) -> dict[str, Allocation]:
        """What the manager has, by pod and container."""
        return {f"{each.owner.pod}/{each.owner.container}": each for each in await self._allocations()}

    async def allocations_of(self, pod: str) -> list[Allocation]:
        """What the manager has of a pod, whose container may have several."""
        return [each for each in await self._allocations() if each.owner.pod == pod]

    async def _allocations(self) -> list[Allocation]:
        async with grpc.aio.insecure_channel(f"unix:{self.runtime_dir / 'allocations.sock'}") as channel:
            answer = await AllocationsStub(channel).ListAllocations(ListAllocationsRequest(), timeout=SAFETY_S)
        return list(answer.allocations)

    async def until_allocations_are(self, *owners: str) -> dict[str, Allocation]:
        """Waits until the manager has allocations of just these."""
        async with asyncio.timeout(SAFETY_S):
            while set(found := await self.allocations()) != set(owners):  # noqa: ASYNC110 - it tells of no change
                await asyncio.sleep(0.05)
        return found

    async def until_said(self, text: str) -> None:
        """Waits until the plugin has said so."""
        await until_true(lambda: text in self.plugin_log.read_text())

    @asynccontextmanager
    async def client(self, answer: ContainerAllocateResponse) -> AsyncIterator[None]:
        """A process of a container that was given this, from when it uses its GPU on."""
        mounts = {Path(mount.container_path).name: mount.host_path for mount in answer.mounts}
        settings = {"LD_PRELOAD": mounts["libedgeshare_cuda.so"], "EDGESHARE_HOOK_DIR": mounts["edgeshare"]}
        command = ["env", *(f"{key}={value}" for key, value in (variables(self.machine_dir, {}) | settings).items())]
        burn = await asyncio.create_subprocess_exec(*command, BURN, "--seconds", "600")
        try:
            await until_true(lambda: self.machine.executed_ns(0) or self.machine.executed_ns(1))
            yield
        finally:
            burn.kill()
            await burn.wait()

    def _environment(self, driver: bool = True) -> dict[str, str]:
        environment = {**os.environ, **(variables(self.machine_dir) if driver else {})}
        # A service account or a node of the machine that the tests run on is not meant.
        for name in ("KUBERNETES_SERVICE_HOST", "NODE_NAME", "NVIDIA_VISIBLE_DEVICES"):
            environment.pop(name, None)
        return environment


async def ended(process: forked.Forked) -> int:
    """Waits for its end; its exit status."""
    return await asyncio.to_thread(process.wait, SAFETY_S)


@asynccontextmanager
async def node_at(root: Path) -> AsyncIterator[Node]:
    """A node with nothing running on it but its kubelet."""
    node = Node(root)
    try:
        await node.kubelet.start()
        yield node
    finally:
        await node.close()
