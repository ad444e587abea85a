"""edgeshare on the node, as its users install it: the real image and chart, on a simulated machine."""

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from simgpu.native import LIBRARIES
from simgpu.readings import MADE
from simgpu.tpu import add_tpus
from tests.kit.onenode.images import PROJECT, project_image
from tests.kit.onenode.installed.edgetpus import inventory
from tests.kit.onenode.installed.workload import workload_image
from tests.kit.onenode.layout import NODE_NAME
from tests.kit.onenode.node import Node
from tests.kit.processes.command import run, say
from tests.kit.processes.errors import NodeError
from tests.kit.programs.binaries import HELM, program

NAME = "edgeshare"  # of the release and of its namespace
CHART = PROJECT / "deploy/chart"
MACHINE = Path("/dev/shm/edgeshare-test-node")  # shared memory, so that the simulated GPUs' clock is in no file
GPUS = 2
# What a test would only wait for: two looks at a GPU, that units of a pod that is over are free, that labels which
# somebody took away are written again. By default it is 10, 10 and 60 s.
HURRIED_PLUGIN = MappingProxyType({"rescan_s": 1, "compare_s": 1})
# Tests bind pods to GPUs themselves, as the assigner does. With this label `edge/config` a node is as the chart has it
# without the assigner.
ADVERTISED = MappingProxyType({"advertise": "all", "configs": {"adding-up": {"advertise": "placeable"}}})
HURRIED_LABELLER = MappingProxyType({"write_interval_s": 1})
OUTSIDE = (
    *("clusterroles", "clusterrolebindings", "rolebindings", "crds"),
    *("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
    *("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
)
"""What the chart makes in no namespace, or in another one than the release's: that takes nothing of it along."""

TIMEOUT = "--timeout=3m"  # a safety limit for a loaded machine; it takes some ten seconds
# The host folders that the chart mounts: the sockets' and the state's.
HOST_FOLDERS = (Path("/run/edgeshare"), Path("/var/lib/edgeshare"))
DRIVER = "/usr/lib/simulated"  # in a container: the image has no driver, as with a real one


def install(
    node: Node,
    *,
    hurried: bool = True,
    machine: Path = MACHINE,
    gpus: int = GPUS,
    more: Mapping[str, object] = MappingProxyType({}),
) -> str:
    """Install this tree with `more` values, or upgrade to it, and return its image's name once everything is ready.

    Raises NodeError when something does not become ready.
    """
    name = upgrade(node, hurried=hurried, machine=machine, gpus=gpus, more=more)
    until_ready(node, gpus)
    return name


def upgrade(
    node: Node,
    *,
    hurried: bool = True,
    machine: Path = MACHINE,
    gpus: int = GPUS,
    tpus: Sequence[str] = (),
    more: Mapping[str, object] = MappingProxyType({}),
) -> str:
    """The same, but for waiting until it is ready; ``tpus`` are the addresses of EdgeTPUs that the machine has, too."""
    name, archive = project_image()
    if not node.has_image(name):
        node.import_image(archive)
    with tempfile.TemporaryDirectory() as scratch:
        node.import_image(workload_image(Path(scratch)))
    for folder in HOST_FOLDERS:
        node.own(folder)
    if not machine.exists():
        say(f"making a machine of {gpus} simulated GPUs in {machine} …")
        node.own(machine)
        edgeshare = [sys.executable, "-m", "edgeshare.cli"]
        run([*edgeshare, "simgpu", "create", "--machine", machine, f"--gpus={gpus}"], cwd=PROJECT)
        add_tpus(machine, *tpus)
        # Another process has made it: what its driver notes is to fail a test, as with one of this process.
        sys.audit(MADE, machine)
    say("installing the chart …")
    chart = (NAME, CHART, "--create-namespace", "--values=-")
    own = values(name, machine, hurried, bool(tpus), places_pods(more))
    helm(node, "upgrade", "--install", *chart, stdin=json.dumps({**own, **more}))
    return name


def helm(node: Node, *words: str | Path, stdin: str = "") -> str:
    """What Helm prints of the release's namespace."""
    where = (f"--kubeconfig={node.layout.kubeconfig}", f"--namespace={NAME}")
    return run([program(HELM, "helm"), *words, *where], stdin=stdin)


def until_ready(node: Node, gpus: int) -> None:
    """Return when its parts are, and the node has the units of so many GPUs. Raises NodeError."""
    in_namespace = (f"--namespace={NAME}", f"daemonset/{NAME}")
    try:
        # Helm's own --wait is content with a DaemonSet of which one pod may be unavailable; here one is all.
        node.kubectl("rollout", "status", *in_namespace, TIMEOUT)
    except NodeError as error:
        said = node.kubectl("logs", *in_namespace, "--all-containers", "--prefix", "--tail=10", "--ignore-errors")
        raise NodeError(f"edgeshare does not become ready:\n{said}") from error
    # Told by the kubelet and by the plugin, each in its own time.
    for resource in (f"gpu-percent}}={gpus * 100}", "gpu-memory-mib}"):
        node.kubectl("wait", f"--for=jsonpath={{.status.allocatable.edge/{resource}", f"node/{NODE_NAME}", TIMEOUT)


def places_pods(more: Mapping[str, object]) -> bool:
    """Whether these values have something place pods by GPU."""
    by_default = {"assigner": False, "scheduler": True}
    parts = {name: more[name] for name in by_default if name in more}
    return any(isinstance(part, Mapping) and part.get("enabled", by_default[name]) for name, part in parts.items())


def values(image: str, machine: Path, hurried: bool, has_tpus: bool, placed: bool) -> dict[str, object]:
    """The chart's values for a node whose devices are simulated; hurried ones have short intervals. ``placed``: other
    values have something place pods by GPU."""
    repository, _, tag = image.rpartition(":")
    manager = inventory(machine) if has_tpus else {}
    # Where the simulated GPUs' device files are.
    advertised = {} if placed else ADVERTISED
    plugin = {"node_dev": str(machine / "dev"), **manager, **advertised, **(HURRIED_PLUGIN if hurried else {})}
    return {
        "image": {"repository": repository, "tag": tag, "pullPolicy": "Never"},
        "shareManager": {"config": manager},
        "devicePlugin": {"config": plugin},
        "labeller": {"config": dict(HURRIED_LABELLER) if hurried else {}},
        # A pod of most tests goes where the node's own kube-scheduler sends it; placement/ has others.
        "scheduler": {"enabled": False},
        "extraEnv": [
            {"name": "LD_LIBRARY_PATH", "value": DRIVER},
            {"name": "SIMGPU_MACHINE", "value": str(machine)},
        ],
        "extraVolumes": [
            {"name": "machine", "hostPath": {"path": str(machine), "type": "Directory"}},
            {"name": "driver", "hostPath": {"path": str(LIBRARIES), "type": "Directory"}},
        ],
        "extraVolumeMounts": [
            {"name": "machine", "mountPath": str(machine)},
            {"name": "driver", "mountPath": DRIVER, "readOnly": True},
        ],
    }
