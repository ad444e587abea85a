"""What an administrator types, as the pages have it, on a node with no edgeshare: the chart as it is shipped is put
there, shares a GPU, is looked at, changed and taken away.

Only what nobody can type here is put in the place of what stands there: the registry's name, and by a file of values
what makes a machine of this one."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeshare.contract.names import ACCELERATOR_NODES_CRD
from simgpu.machine import Machine
from tests.kit.deploy.blocks import ROOT
from tests.kit.onenode.images import project_image
from tests.kit.onenode.installed import release
from tests.kit.onenode.installed.labels import ours
from tests.kit.onenode.installed.release import GPUS, MACHINE, NAME
from tests.kit.onenode.installed.scheduler import import_scheduler, until_gone, until_scheduling
from tests.kit.onenode.installed.workload import EXAMPLE, SHARES
from tests.kit.onenode.layout import NODE_NAME
from tests.kit.onenode.node import Node
from tests.kit.onenode.pods.executed import wait_until_executing
from tests.kit.onenode.pods.given import listed
from tests.kit.onenode.pods.pods import WAIT
from tests.kit.onenode.shell import Shell, block_with
from tests.kit.processes.waiting import until

INSTALL, UPGRADE = "docs/install/index.md", "docs/install/upgrading.md"
REGISTRY = "REGISTRY/edgeshare"
NAMESPACE = f"namespace/{NAME}"


@pytest.fixture
def shell(node: Node, edgeshare: Machine) -> Iterator[Shell]:
    """An administrator's, while the node has no edgeshare; at the end it has it as other tests do."""
    import_scheduler(node)
    until(lambda: listed() == {}, "no pod has a share")
    release.helm(node, "uninstall", NAME, release.TIMEOUT)
    node.kubectl("delete", "crd", ACCELERATOR_NODES_CRD)
    node.kubectl("delete", NAMESPACE, WAIT)
    yield Shell(node)
    node.kubectl("delete", "--ignore-not-found", WAIT, "-f", str(EXAMPLE))
    release.install(node)
    until_gone(node)


@pytest.fixture
def values(tmp_path: Path) -> Path:
    """A file of values: what of this machine is not as elsewhere."""
    image, _ = project_image()
    own = release.values(image, MACHINE, hurried=False, has_tpus=False, placed=True)
    path = tmp_path / "values.yaml"
    path.write_text(json.dumps({name: value for name, value in own.items() if name != "scheduler"}))
    return path


def test_what_the_pages_have_typed_installs_shows_changes_and_removes_it(
    shell: Shell, node: Node, edgeshare: Machine, values: Path, tmp_path: Path
) -> None:
    repository, _, _ = project_image()[0].rpartition(":")
    installing = block_with(INSTALL, "--create-namespace").rstrip().replace(REGISTRY, repository)
    shell.type(f"{installing} --values={values}")
    looking = block_with(INSTALL, "grep -E")
    # What a node has to give, its kubelet says in its own time.
    until(lambda: f"edge/gpu-percent: {GPUS * 100}" in " ".join(shell.type(looking).split()), "the node has units")
    assert "no allocations" in shell.type(looking)
    assert "edgeshare-scheduler" in shell.type(block_with("docs/install/placement.md", "lease edgeshare-scheduler"))

    until_scheduling(node)
    applied = block_with("docs/begin/cluster.md", "three-shares.yaml").splitlines()
    shell.type(applied[0])
    wait_until_executing(edgeshare, *SHARES)
    assert all(f"default/{name}/main" in shell.type("\n".join(applied[1:])) for name in SHARES)
    status, _ = block_with(INSTALL, "kubectl edgeshare status").splitlines()  # the other one goes on for ever
    # The plugin tells of an allocation in its own time.
    until(lambda: all(f"default/{name}/main" in shell.type(status) for name in SHARES), "who has what is told")
    pod = node.kubectl(
        "get", "pods", f"--namespace={NAME}", f"--selector=app.kubernetes.io/name={NAME}", "--output=name"
    )
    (_, trace) = block_with("docs/begin/sharing.md", "edgeshare trace").splitlines()
    Shell(node, tmp_path).type(trace.replace("POD", pod.strip()))
    names = {
        each.get("args", {}).get("name") for each in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    }
    assert {f"default/{name}/main" for name in SHARES} <= names

    shell.type(block_with(INSTALL, "resourceQuota.enabled=true"))
    assert "resourcequota" in node.kubectl("get", "resourcequota", f"--namespace={NAME}", "--output=name")
    shell.type(block_with(UPGRADE, "kubectl apply -f deploy/chart/crds"))
    assert "resourcequota" in node.kubectl("get", "resourcequota", f"--namespace={NAME}", "--output=name")
    shell.type("helm rollback edgeshare --namespace edgeshare")

    node.kubectl("delete", WAIT, "-f", str(EXAMPLE))
    assert ours(node)
    # The last line is for who has NFD.
    ending = block_with("docs/parts/labeller.md", "delete daemonset edgeshare-labeller").splitlines()
    shell.type("\n".join(ending[:-1]))
    assert ours(node) == set()
    shell.type(block_with(INSTALL, "helm uninstall"))
    for inline in (f"kubectl delete crd {ACCELERATOR_NODES_CRD}", f"kubectl delete {NAMESPACE.replace('/', ' ')}"):
        assert f"`{inline}`" in (ROOT / INSTALL).read_text()
        shell.type(inline)
    status = node.told(f"/api/v1/nodes/{NODE_NAME}")["status"]
    assert not any("edge/gpu-memory-mib" in status[field] for field in ("capacity", "allocatable"))
