"""The node that the tests of this folder share, and edgeshare on it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from simgpu.machine import Machine

# For a test itself; making the node ready may include building Kubernetes.
TEST_TIMEOUT_S = 300

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

pytest.register_assert_rewrite("tests.kit.onenode.pods.given")

from tests.kit.onenode.ahead import command  # noqa: E402
from tests.kit.onenode.images import project_image  # noqa: E402
from tests.kit.onenode.installed.parts import Parts  # noqa: E402
from tests.kit.onenode.installed.release import GPUS, MACHINE  # noqa: E402
from tests.kit.onenode.installed.workload import EXAMPLE, SHARES  # noqa: E402
from tests.kit.onenode.layout import KUBELET_ROOT, NODE_NAME, default_layout  # noqa: E402
from tests.kit.onenode.node import Node  # noqa: E402
from tests.kit.onenode.pods.executed import wait_until_executing  # noqa: E402
from tests.kit.onenode.pods.given import allocatable, shares  # noqa: E402
from tests.kit.onenode.pods.pods import WAIT, Pods  # noqa: E402
from tests.kit.processes.waiting import until  # noqa: E402
from tests.kit.programs.binaries import KUBELETS, KUBERNETES, Module  # noqa: E402

ON_NODE = (f"node/{NODE_NAME}", WAIT)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as `soak` what of the other kubelet's is not marked each_kubelet. Count the time of a test on the node
    without that of its fixtures. Run first what needs no edgeshare, while its image is made; last what runs on another
    kubelet, so that there is one exchange of it, and nothing else runs on that one."""
    for item in items:
        if is_left_to_soak(item):
            item.add_marker(pytest.mark.soak)
        if HERE in item.path.parents and uses(item, "node"):
            item.add_marker(pytest.mark.timeout(TEST_TIMEOUT_S, func_only=True))
    items.sort(key=lambda item: [uses(item, name) for name in ("kubelet", "edgeshare", "archive")])


def uses(item: pytest.Item, fixture: str) -> bool:
    """Whether a test needs it, be it by another fixture."""
    return fixture in getattr(item, "fixturenames", ())


def is_left_to_soak(item: pytest.Item) -> bool:
    """Whether it repeats on another kubelet what is the same on each."""
    kubelet = (
        item.callspec.params.get("kubelet") if isinstance(item, pytest.Function) and hasattr(item, "callspec") else None
    )
    return kubelet not in (None, KUBERNETES) and item.get_closest_marker("each_kubelet") is None


MAKING = pytest.StashKey[subprocess.Popen[bytes]]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """What tests to come need, and what takes long to make, is made beside those before. Of several workers the first
    one sees to it. Whoever needs it waits for it, and finds out by itself why there is none."""
    worker = getattr(session.config, "workerinput", {}).get("workerid", "gw0")
    make = command(getattr(item, "fixturenames", ()) for item in session.items)
    if make and worker == "gw0" and not session.config.option.collectonly:
        session.config.stash[MAKING] = subprocess.Popen(make, cwd=ROOT)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Nothing is being made any more."""
    if making := session.config.stash.get(MAKING, None):
        making.wait()


@pytest.fixture(scope="session")
def archive() -> Path:
    """The archive of edgeshare's image."""
    return project_image()[1]


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    """The node of this machine, Ready; one that runs already (`make cluster`) is used and left up."""
    shared = Node(default_layout())
    found_up = shared.is_up and shared.runs
    if not found_up:
        shared.down()  # What a crash has left: its pods would be taken for the tests' own.
    start()
    yield shared
    if not found_up:
        take_down_after_a_crash(shared)


@pytest.fixture(scope="session")
def edgeshare(node: Node) -> Machine:
    """This tree's edgeshare on the node, ready, and the simulated machine that it shares."""
    start("--with-edgeshare")
    return Machine(MACHINE)


@pytest.fixture(scope="session", params=KUBELETS, ids=lambda kubelet: f"kubelet-{kubelet.version}")
def kubelet(node: Node, edgeshare: Machine, request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs the tests that ask for it on the kubelets of both versions that edgeshare is held to, first all of them on
    one and then all on the other; the version."""
    wanted: Module = request.param
    node.use_kubelet(wanted)
    units = f"--for=jsonpath={{.status.allocatable.edge/gpu-percent}}={GPUS * 100}"
    node.kubectl("wait", f"--for=jsonpath={{.status.nodeInfo.kubeletVersion}}=v{wanted.version}", *ON_NODE)
    node.kubectl("wait", units, *ON_NODE)
    # The Node may say so from before, and tests bind pods themselves.
    until(lambda: allocatable() == GPUS * 100, "the kubelet can give all units out")
    Pods(node).wait_until_read()
    yield wanted.version
    node.use_kubelet(KUBERNETES)


@pytest.fixture(scope="session")
def parts(node: Node, edgeshare: Machine) -> Parts:
    """edgeshare's own containers."""
    return Parts(node)


@pytest.fixture(scope="module")
def example(node: Node, edgeshare: Machine) -> Iterator[None]:
    """The pods of the example, running."""
    # Units of a pod that is over are another's once the driver was seen to have freed what its processes had: beside
    # some that are not, the example has not room on one GPU.
    until(lambda: shares() == [], "nothing is left of the pods before")
    node.kubectl("apply", "-f", str(EXAMPLE))
    wait_until_executing(edgeshare, *SHARES)
    node.kubectl("wait", "--for=condition=Ready", WAIT, "-f", str(EXAMPLE))
    yield
    node.kubectl("delete", WAIT, "-f", str(EXAMPLE))


@pytest.fixture
def pods(node: Node, edgeshare: Machine) -> Iterator[Pods]:
    """Starts pods with shares; all are deleted at the end."""
    started = Pods(node)
    yield started
    started.delete_all()


def start(*options: str) -> None:
    """Run the script that people use; what it prints, builds included, is shown with the first test."""
    if subprocess.run([sys.executable, "-m", "tests.kit.onenode.up", *options], cwd=ROOT, check=False).returncode != 0:
        pytest.fail("the node did not come up: see what up.py said", pytrace=False)


def take_down_after_a_crash(node: Node) -> None:
    """Kill everything at once, and hold `down` to leaving nothing of it."""
    node.crash()
    subprocess.run([sys.executable, "-m", "tests.kit.onenode.down"], cwd=ROOT, check=True)
    assert list(node.layout.state.iterdir()) == [node.layout.logs]
    assert not KUBELET_ROOT.exists()
    # Not by a glob, which fails where a group of somebody else's goes meanwhile.
    assert not [folder for folder, _, _ in os.walk("/sys/fs/cgroup") if Path(folder).name == "kubepods"]
    left = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if "kubelet" in line]
    assert not left
