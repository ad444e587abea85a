"""The image for arm64, which is made on a machine of another processor: its parts run, in an emulator."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import edgeshare
from simgpu.create import create, destroy
from tests.kit.hook.portable import debian, portable
from tests.kit.onenode.images import BASE_NAME, CROSS_BUILDER_PACKAGES, PROJECT, Store
from tests.kit.processes.command import run
from tests.kit.programs.emulated import command, is_possible

IMAGE = "localhost/edgeshare-arm64:1"
DRIVER = "/usr/lib/simulated"
LONG_S = 3600
"""All that an image is made of is compiled and fetched, and run at a twentieth of the processor's speed."""

LOADED = """
import platform, sys
import cryptography.x509, grpc, numpy, cuda_hook._core, sharemgr.node.turns.policy
print(platform.machine(), sharemgr.node.turns.policy.__file__, cuda_hook._core.__file__)
"""


class Emulated:
    """A root of the image's files, and a simulated machine that its programs are told of."""

    def __init__(self, root: Path, machine: Path) -> None:
        self.root = root
        self._emulator = debian("qemu-user-static") / "usr/bin/qemu-aarch64-static"
        self._env = {
            "PATH": "/opt/edgeshare/bin:/usr/bin:/bin",
            "LD_LIBRARY_PATH": DRIVER,
            "SIMGPU_MACHINE": str(machine),
        }

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """A program to its end."""
        return subprocess.run(self._line(*words), cwd=PROJECT, check=False, capture_output=True, text=True)

    @contextmanager
    def running(self, *words: str) -> Iterator["subprocess.Popen[str]"]:
        """A program, which is told to end after the block."""
        with subprocess.Popen(self._line(*words), cwd=PROJECT, stdout=-1, text=True, start_new_session=True) as process:
            try:
                yield process
            finally:
                os.killpg(process.pid, 15)

    def _line(self, *words: str) -> list[str]:
        # Only of the emulated program: the loader of this machine's would look there, too.
        env = [f"{name}={value}" for name, value in self._env.items()]
        return command(self._emulator, self.root, "/usr/bin/env", *env, *words)


@pytest.fixture
def image(scratch: Path) -> Iterator[Emulated]:
    """The image made of a fresh clone, and what a program needs that is run in it."""
    if not is_possible():
        pytest.skip("emulators of a user namespace need root and Linux 6.7 or later")
    clone = scratch / "clone"
    run(["git", "clone", "--quiet", PROJECT, clone])
    store = Store(scratch)
    store.add_bases(BASE_NAME)
    store.build_whole(clone, IMAGE, "--platform=linux/arm64", packages=CROSS_BUILDER_PACKAGES)
    root = store.unpack(IMAGE, "arm64")
    simulated = portable("aarch64", "simgpu")
    shutil.copytree(simulated / "lib", root / DRIVER[1:])
    shutil.copy2(simulated / "bin/burn", root / "usr/bin/burn")
    machine = scratch / "machine"
    create(machine, gpus=2, memory_mib=8192)
    yield Emulated(root, machine)
    destroy(machine)
    store.buildah("umount", "--all")


@pytest.mark.soak
@pytest.mark.timeout(LONG_S, func_only=False)
def test_image_for_another_processor_is_made_of_a_fresh_clone_and_its_parts_run(image: Emulated) -> None:
    assert image.run("edgeshare", "--version").stdout.split()[-1] == edgeshare.__version__
    loaded = image.run("python", "-c", LOADED)
    processor, *modules = loaded.stdout.split()
    assert (processor, loaded.stderr) == ("aarch64", "")
    # Compiled for that processor: with another's name they would not be found, and Python would run their source.
    assert modules[0].endswith(".cpython-311-aarch64-linux-gnu.so")
    assert modules[1].endswith(".abi3.so")
    with image.running("edgeshare", "sharemgr", "node") as manager:
        assert manager.stdout is not None
        assert "ready" in manager.stdout.readline()
        told = image.run("edgeshare", "status", "--json")
        assert len(json.loads(told.stdout)["devices"]) == 2
        told = image.run("edgeshare", "doctor")
        assert "is loaded by programs here" in told.stdout, told.stderr
        assert "no share manager serves this node" not in told.stdout
        share = ("edgeshare", "run", "--percent", "50", "--memory-mib", "512", "--", "burn", "--seconds", "1")
        within, over = (image.run(*share, "--alloc-mib", mib) for mib in ("100", "600"))
        assert (within.returncode, within.stderr) == (0, "")
        assert over.returncode != 0
        assert "OUT_OF_MEMORY" in over.stderr
