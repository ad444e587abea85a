"""What every kind of test needs."""

import asyncio
import fcntl
import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from fnmatch import fnmatch
from pathlib import Path
from types import MappingProxyType

import hypothesis
import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from simgpu.readings import MADE, Misuses
from tests.kit.processes.daemons import GO
from tests.kit.properties.examples import WHOLE

ROOT = Path(__file__).parent.parent

# Every kubectl, helm and buildah that a test runs, as the daemons.
os.environ.update({**GO, **os.environ})

# How long an example takes, or the choice of one, is the machine's to say.
ANY_TIME = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
SAME = hypothesis.settings(ANY_TIME, derandomize=True, print_blob=False)
hypothesis.settings.register_profile("same", SAME, max_examples=WHOLE // 2)
hypothesis.settings.register_profile("whole", SAME, max_examples=WHOLE)
hypothesis.settings.register_profile("explore", ANY_TIME, print_blob=True, max_examples=WHOLE)
# The same change must not pass once and fail once; who looks for more says --hypothesis-profile=explore.
hypothesis.settings.load_profile("same")

# How much of what could go on for hours is run: by `make test`, and with --soak.
USUAL = MappingProxyType(
    {
        "engine_times": 1,
        "minutes": 2,
        "mixed_pods": 32,
        "openings": 60,
        "seeds": 1,
        "simulated_clusters": 120,
        "storm_pods": 70,
        "storm_strikes": 3,
    }
)
SOAK = MappingProxyType(
    {
        "engine_times": 4,
        "minutes": 10,
        "mixed_pods": 60,
        "openings": 600,
        "seeds": 20,
        "simulated_clusters": 1000,
        "storm_pods": 200,
        "storm_strikes": 5,
    }
)

ON_API_SERVER = ("assigner", "cluster", "deploy")
WITHOUT_NODE = "tests/cluster/kit/"
IN_STRETCHES = {"tests/hook/memory/test_books_random.py"}
MEASURING = {
    "tests/demo/test_bench.py",
    *(f"tests/node/test_{name}.py" for name in ("attacks", "hand_over", "threads")),
}

LOCKS = ROOT / "build" / "locks"
MEASURING_AT_ONCE = 2
"""Tests that measure, where nothing else runs: what they start uses little of two processors."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """--soak: whole what `make test` runs in part."""
    parser.addoption("--soak", action="store_true", help="run whole what takes long: more repetitions, both kubelets")


@pytest.fixture(scope="session")
def counts(pytestconfig: pytest.Config) -> Mapping[str, int]:
    """How often, or with how many, a test does what it could do without end."""
    return SOAK if pytestconfig.getoption("soak") else USUAL


@pytest.fixture
async def let_pass(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """The event loop's clock stands still, so that nothing runs out, but for the seconds that are passed to this."""
    loop = asyncio.get_running_loop()
    now_s = loop.time()
    monkeypatch.setattr(loop, "time", lambda: now_s)

    def let_pass(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    return let_pass


WATCHED: list[Misuses] = []
"""Of every machine that a test of this process made, or told of, until its files are gone."""


def watch_machine(event: str, arguments: tuple[object, ...]) -> None:
    """As an audit hook."""
    if event == MADE:
        (directory,) = arguments
        assert isinstance(directory, Path)
        WATCHED.append(Misuses(directory))


def pytest_configure(config: pytest.Config) -> None:
    """Every simulated machine is watched, whoever makes it here; and --soak tries all examples of a property."""
    sys.addaudithook(watch_machine)
    if config.getoption("soak"):
        hypothesis.settings.load_profile("whole")


def pytest_unconfigure() -> None:
    """None is any more."""
    while WATCHED:
        WATCHED.pop().close()


@pytest.fixture(autouse=True)
def nothing_misused(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test in which a simulated driver was used as a real one cannot be relied on to survive: by a handle of
    what is no more, without a context, from a forked child. A test of what does so is marked ``misuses``, with patterns
    of what may be noted of it."""
    own: Path | None = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    yield
    found = {misuse for watched in WATCHED for misuse in watched.new()}
    # A machine in the test's own folder stays there, and nobody uses it any more.
    for watched in [each for each in WATCHED if each.over or (own is not None and own in each.directory.parents)]:
        WATCHED.remove(watched)
        watched.close()
    meant = [pattern for marker in request.node.iter_markers("misuses") for pattern in marker.args]
    worse = sorted(misuse for misuse in found if not any(fnmatch(misuse, pattern) for pattern in meant))
    assert not worse, f"the simulated driver was misused: {worse}"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """What is found is there until the run ends, and is not looked through for garbage, neither now nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whole files measure; what is marked `soak` is left to it."""
    if not config.getoption("soak"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("soak")])
        items[:] = [item for item in items if not item.get_closest_marker("soak")]
    for item in items:
        if str(item.path.relative_to(ROOT)) in MEASURING:
            item.add_marker(pytest.mark.measures)


class Together(LoadScopeScheduling):
    """Says which tests one of several workers has: those of the one node of this machine, those of the folders that
    share an API server, those of a file; on the virtual clock each by itself, as each stretch of random sequences is.
    Those in a browser are the node's, before it begins: it gives pods their interfaces, and a browser ends what it is
    connecting when a machine's network changes."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        folder = file.removeprefix("tests/").partition("/")[0]
        if folder == "virtual" or file in IN_STRETCHES:
            return nodeid
        if folder == "web" or (folder == "cluster" and not file.startswith(WITHOUT_NODE)):
            return "node"
        return "api-server" if folder in ON_API_SERVER else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Together:
    """Has xdist ask it."""
    return Together(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Runs a test that is marked ``measures``, with its fixtures, while no other test of this tree runs but one like
    it: it sees what the processors' other work changes. Any other test runs beside others."""
    with ExitStack() as stack:
        if hasattr(item.config, "workerinput"):
            LOCKS.mkdir(parents=True, exist_ok=True)
            queue = stack.enter_context((LOCKS / "queue").open("w"))
            places = [stack.enter_context((LOCKS / f"place-{n}").open("w")) for n in range(MEASURING_AT_ONCE)]
            how = fcntl.LOCK_SH
            if item.get_closest_marker("measures"):
                places = [places[int(item.config.workerinput["workerid"].removeprefix("gw")) % MEASURING_AT_ONCE]]
                how = fcntl.LOCK_EX
            # Whoever waits for the others to end keeps the queue, so that none begins before it.
            fcntl.flock(queue, fcntl.LOCK_EX)
            for place in places:
                fcntl.flock(place, how)
                # Closing it would not do where a process that the test forked has it open, too.
                stack.callback(fcntl.flock, place, fcntl.LOCK_UN)
            fcntl.flock(queue, fcntl.LOCK_UN)
        return (yield)


def pytest_sessionstart() -> None:
    """Refuses to test what was compiled before its source was changed."""
    for compiled in ROOT.glob("*__mypyc.*.so"):
        # Beside each compiled module lies its face: folders are compiled whole.
        folders = {face.parent for face in (ROOT / "sharemgr").rglob("*.so")}
        sources = [path for folder in folders for path in folder.glob("*.py") if path.name != "__init__.py"]
        newer = [path for path in sources if path.stat().st_mtime > compiled.stat().st_mtime]
        if newer:
            pytest.exit(f"{newer[0]} was changed after it was compiled: run make build", 2)


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """Lets the programs that tests start be interrupted, also where this run itself was started in the background: a
    shell makes such a process ignore SIGINT, and its children inherit that."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
