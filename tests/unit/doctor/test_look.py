"""What is seen of a node: configurations of runtimes as their makers write them, sockets, the hook, and the command."""

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from click.testing import CliRunner, Result

from edgeshare.cli.doctor import command
from edgeshare.cli.doctor.facts import Board, Runtime, Socket, Toolkit
from edgeshare.cli.doctor.look import KUBELET_DIRS, examine
from edgeshare.cli.doctor.runtimes import read_runtimes, read_toolkit
from edgeshare.inventory.tree import Tree

CONTAINERD = "etc/containerd/config.toml"
TOOLKIT = "etc/nvidia-container-runtime/config.toml"
OF_1 = """
version = 2
[plugins."io.containerd.grpc.v1.cri"]
{more}
[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "nvidia"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
"""
OF_2 = """
version = 3
imports = ["/etc/containerd/conf.d/*.toml"]
[plugins."io.containerd.cri.v1.runtime".containerd]
default_runtime_name = "runc"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
"""
DROP_IN = """
version = 3
[plugins."io.containerd.cri.v1.runtime".containerd]
default_runtime_name = "nvidia"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia]
"""
FOLDERS = [f"--{name}-dir=/{name}" for name in ("kubelet", "runtime", "state")]


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.fixture
def served() -> Iterator[Path]:
    """A root, with a short path, in which a kubelet serves one socket and has left another."""
    with (
        TemporaryDirectory(dir="/dev/shm", prefix="es-doctor-") as root,
        socket.socket(socket.AF_UNIX) as serving,
        socket.socket(socket.AF_UNIX) as gone,
    ):
        for bound, name in ((serving, "device-plugins"), (gone, "pod-resources")):
            path = Path(root) / "kubelet" / name / "kubelet.sock"
            path.parent.mkdir(parents=True)
            bound.bind(str(path))
        serving.listen()
        yield Path(root)


def doctor(root: Path, *more: str) -> Result:
    return CliRunner().invoke(command, ["--root", str(root), *FOLDERS, *more])


@pytest.mark.parametrize(("more", "with_cdi"), [("", False), ("enable_cdi = true", True)])
def test_containerd_1_has_its_parts_by_their_old_names(tmp_path: Path, more: str, with_cdi: bool) -> None:
    put(tmp_path, CONTAINERD, OF_1.format(more=more))
    assert list(read_runtimes(Tree(tmp_path))) == [
        Runtime(f"/{CONTAINERD}", handlers=("runc", "nvidia"), default="nvidia", with_cdi=with_cdi)
    ]


def test_what_containerd_2_imports_is_read_over_it(tmp_path: Path) -> None:
    put(tmp_path, CONTAINERD, OF_2)
    assert list(read_runtimes(Tree(tmp_path))) == [Runtime(f"/{CONTAINERD}", handlers=("runc",), default="runc")]
    put(tmp_path, "etc/containerd/conf.d/99-nvidia.toml", DROP_IN)
    assert list(read_runtimes(Tree(tmp_path))) == [
        Runtime(f"/{CONTAINERD}", handlers=("runc", "nvidia"), default="nvidia")
    ]


def test_crios_parts_are_read_as_one(tmp_path: Path) -> None:
    put(tmp_path, "etc/crio/crio.conf.d/10-crio.conf", '[crio.runtime]\ndefault_runtime = "crun"\n')
    put(tmp_path, "etc/crio/crio.conf.d/99-nvidia.conf", "[crio.runtime.runtimes.nvidia]\n")
    assert list(read_runtimes(Tree(tmp_path))) == [
        Runtime("/etc/crio/crio.conf.d/10-crio.conf", handlers=("nvidia",), default="crun")
    ]


def test_k3s_has_its_own_place(tmp_path: Path) -> None:
    path = "var/lib/rancher/k3s/agent/etc/containerd/config.toml"
    put(tmp_path, path, OF_2)
    assert [runtime.path for runtime in read_runtimes(Tree(tmp_path))] == [f"/{path}"]


@pytest.mark.parametrize("text", ["plugins = 3", 'imports = "all"', "plugins = {'io.containerd.cri.v1.runtime' = []}"])
def test_what_is_not_what_it_should_be_is_as_if_it_were_not_there(tmp_path: Path, text: str) -> None:
    put(tmp_path, CONTAINERD, text)
    (runtime,) = read_runtimes(Tree(tmp_path))
    assert (runtime.error, runtime.handlers, runtime.default) == ("", (), "runc")


@pytest.mark.parametrize("text", ["a = [", "\udcff", "a = " + "[" * 60_000], ids=["cut", "no text", "nested"])
def test_what_is_no_toml_is_an_error_with_its_place(tmp_path: Path, text: str) -> None:
    for path in (CONTAINERD, TOOLKIT, "etc/crio/crio.conf"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_bytes(text.encode(errors="surrogateescape"))
    errors = [runtime.error for runtime in read_runtimes(Tree(tmp_path))]
    toolkit = read_toolkit(Tree(tmp_path))
    assert toolkit is not None
    assert [error.startswith("it is no TOML: ") for error in (*errors, toolkit.error)] == [True] * 3


@pytest.mark.parametrize(
    ("text", "takes"), [("", True), ("accept-nvidia-visible-devices-envvar-when-unprivileged = false", False)]
)
def test_the_toolkit_takes_variables_unless_it_is_told_not_to(tmp_path: Path, text: str, takes: bool) -> None:
    assert read_toolkit(Tree(tmp_path)) is None
    put(tmp_path, TOOLKIT, text)
    assert read_toolkit(Tree(tmp_path)) == Toolkit(f"/{TOOLKIT}", takes_variables=takes)


def test_sockets_are_asked(served: Path) -> None:
    node = examine(served, Path("/kubelet"), Path("/run"), Path("/state"))
    assert dict(node.kubelet.sockets) == {
        "/kubelet/device-plugins/kubelet.sock": Socket.SERVED,
        "/kubelet/pod-resources/kubelet.sock": Socket.REFUSED,
    }
    assert node.manager is Socket.ABSENT
    assert examine(served / "kubelet", Path("/kubelet"), Path("/run"), Path("/state")).kubelet.sockets == ()


@pytest.mark.parametrize("elsewhere", KUBELET_DIRS[1:])
def test_sockets_are_found_in_the_folders_of_other_distributions(elsewhere: str) -> None:
    """One of a kubelet's two is where every kubelet has it, the other below the root folder that it was given."""
    with (
        TemporaryDirectory(dir="/dev/shm", prefix="es-doctor-") as name,
        socket.socket(socket.AF_UNIX) as plugins,
        socket.socket(socket.AF_UNIX) as pods,
    ):
        root = Path(name)
        usual, other = f"{KUBELET_DIRS[0]}/device-plugins", f"{elsewhere}/pod-resources"
        for serving, folder in ((plugins, usual), (pods, other)):
            (root / folder.lstrip("/")).mkdir(parents=True)
            serving.bind(str(root / folder.lstrip("/") / "kubelet.sock"))
            serving.listen()
        # What an older start has left below the usual folder is not taken for it.
        (root / KUBELET_DIRS[0].lstrip("/") / "pod-resources").mkdir()
        node = examine(root, Path(KUBELET_DIRS[0]), Path("/run"), Path("/state"))
        assert node.kubelet.sockets == (
            (f"{usual}/kubelet.sock", Socket.SERVED),
            (f"{other}/kubelet.sock", Socket.SERVED),
        )


def test_folder_that_is_named_goes_before_those_that_are_known(served: Path) -> None:
    with socket.socket(socket.AF_UNIX) as serving:
        folder = served / KUBELET_DIRS[1].lstrip("/") / "device-plugins"
        folder.mkdir(parents=True)
        serving.bind(str(folder / "kubelet.sock"))
        serving.listen()
        node = examine(served, Path("/kubelet"), Path("/run"), Path("/state"))
    # Of the one that nobody serves anywhere, it is said where it was looked for first.
    assert node.kubelet.sockets == (
        ("/kubelet/device-plugins/kubelet.sock", Socket.SERVED),
        ("/kubelet/pod-resources/kubelet.sock", Socket.REFUSED),
    )


def test_a_program_loads_the_hook_and_the_folder_above_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "var/lib").mkdir(parents=True)
    hook = examine(tmp_path, Path("/k"), Path("/r"), Path("/var/lib/edgeshare/deep")).hook
    assert (hook.error, hook.folder, hook.writable) == ("", "/var/lib", True)
    assert Path(hook.library).is_file()


def test_a_library_that_the_loader_passes_over_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "hook.so"
    library.write_text("nothing of the kind")
    monkeypatch.setattr("edgeshare.cli.doctor.look.hook_library", lambda: library)
    error = examine(tmp_path, Path("/k"), Path("/r"), Path("/s")).hook.error
    assert str(library) in error
    assert error.startswith(str(shutil.which("true")))


def test_a_program_that_does_not_end_with_the_hook_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "true"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr("edgeshare.cli.doctor.look.PATIENCE_S", 0.1)
    assert examine(tmp_path, Path("/k"), Path("/r"), Path("/s")).hook.error.startswith(f"{program} with ")


@pytest.mark.parametrize(("option", "said"), [("noexec", "is mounted noexec"), ("ro", "cannot be written to")])
def test_a_mount_that_forbids_what_is_needed_is_seen(tmp_path: Path, option: str, said: str) -> None:
    doctor = f"{sys.executable} -m edgeshare.cli doctor --root / --state-dir {tmp_path}/below --json"
    # A mount of its own, which goes with the program.
    script = f"mount -t tmpfs -o {option} tmpfs {tmp_path}; {doctor}"
    tried = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {tried.stderr.strip()}")
    done = subprocess.run(["unshare", "--mount", "sh", "-ec", script], stdout=subprocess.PIPE, text=True, check=False)
    (wrong,) = (each for each in json.loads(done.stdout) if str(tmp_path) in each["text"])
    assert (wrong["subject"], wrong["state"], done.returncode) == ("hook", "wrong", 1)
    assert said in wrong["text"]


@pytest.mark.parametrize(
    ("files", "board"),
    [
        ({}, Board(0, memory_cgroup=True)),
        ({"proc/meminfo": "MemTotal: 5 kB\nSwapTotal:     4096 kB\n"}, Board(4096, memory_cgroup=True)),
        ({"proc/meminfo": "SwapTotal: many kB\nSwapTotal:\n"}, Board(0, memory_cgroup=True)),
        ({"sys/fs/cgroup/cgroup.controllers": "cpuset cpu io\n"}, Board(0, memory_cgroup=False)),
        ({"sys/fs/cgroup/cgroup.controllers": "cpu memory\n"}, Board(0, memory_cgroup=True)),
        ({"proc/cgroups": "#subsys_name\thierarchy\nmemory\t0\t80\t0\ncpu\t1\t2\t1\n"}, Board(0, memory_cgroup=False)),
        ({"proc/cgroups": "#subsys_name\thierarchy\nmemory\t0\t80\t1\n"}, Board(0, memory_cgroup=True)),
    ],
)
def test_swap_and_the_memory_cgroup_are_read(tmp_path: Path, files: dict[str, str], board: Board) -> None:
    for path, text in files.items():
        put(tmp_path, path, text)
    assert examine(tmp_path, Path("/k"), Path("/r"), Path("/s")).board == board


def test_a_file_that_cannot_be_read_is_said_and_the_rest_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "proc/meminfo").mkdir(parents=True)
    node = examine(tmp_path, Path("/k"), Path("/r"), Path("/s"))
    assert node.unreadable == "/proc/meminfo is not a plain file: look at what lies there"
    assert node.hook.library


def test_the_command_says_what_is_wrong_and_how_it_ended(served: Path) -> None:
    done = doctor(served)
    assert done.exit_code == 1
    lines = [line.strip() for line in done.output.splitlines()]
    assert "wrong  kubelet  nobody serves /kubelet/pod-resources/kubelet.sock" in lines
    assert "\x1b" not in done.output
    found = json.loads(doctor(served, "--json").output)
    assert {"subject", "state", "text", "mend"} == found[0].keys()
    assert [each["subject"] for each in found if each["state"] == "wrong"] == ["kubelet"]


def test_where_nothing_is_wrong_it_ends_well(tmp_path: Path) -> None:
    done = doctor(tmp_path)
    assert (done.exit_code, "wrong" in done.output) == (0, False), done.output


def test_a_root_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    done = doctor(tmp_path / "nothing")
    assert done.exit_code == 2
    assert "is no folder" in done.output
