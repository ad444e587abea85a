"""Who looks at the wall clock, which jumps: nobody measures with it. A jump changes no share, no grant, no expiry and
no rate, since whoever is not named here has the monotonic one."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

WALL = {
    "edgeshare/cli/sharemgr/certificates.py": "when a certificate ends is a date",
    "edgeshare/cli/page/serve.py": "told: when a picture was seen",
    "edgeshare/cli/status/cluster_live.py": "told: when a status was seen",
    "edgeshare/cli/top.py": "told: when a status was seen",
    "edgeshare/kube/kube.py": "told: when an event was",
    "deviceplugin/health/watch.py": "told: since when a device is unhealthy; how long is measured by the other clock",
    "deviceplugin/allocations/records.py": "which of two records of the same units is younger",
    "deviceplugin/kubelet/registration.py": "whether the kubelet's socket is still the same one",
    "sharemgr/node/recorder.py": "told: when a recording began",
    "sharemgr/cluster/replica/lease.py": "told: when a Lease was renewed; the other clock says how long it holds",
    "sharemgr/cluster/replica/retrying.py": "told: a text that differs from the last one",
    "sharemgr/cluster/status/managers.py": "told: when a node answered last",
    "sharemgr/cluster/status/page.py": "told: when a picture was seen",
    "sharemgr/cluster/status/teller.py": "told: since when the API server does not answer",
}
"""And what for."""

FIELDS = {"st_mtime", "st_mtime_ns", "st_ctime", "st_ctime_ns", "st_atime", "st_atime_ns", "utcnow", "today"}
CALLS = {("time", "time"), ("time", "time_ns"), ("datetime", "now"), ("date", "today"), ("time", "CLOCK_REALTIME")}
C_CALLS = re.compile(r"CLOCK_REALTIME|CLOCK_TAI|gettimeofday|\btime\(|pthread_cond_timedwait|sem_timedwait|TIME_UTC")


def uses(path: Path) -> bool:
    """Whether a Python module looks at the wall clock, or at what the kernel stamped by it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module == "time"
            and {each.name for each in node.names}
            & {
                "time",
                "time_ns",
            }
        ):
            return True
        if isinstance(node, ast.Attribute):
            of = node.value.id if isinstance(node.value, ast.Name) else ""
            if node.attr in FIELDS or (of, node.attr) in CALLS:
                return True
    return False


def sources(suffixes: tuple[str, ...], *tops: str) -> Iterator[Path]:
    for top in tops:
        yield from (path for path in (ROOT / top).rglob("*") if path.suffix in suffixes)


def test_no_module_measures_with_the_wall_clock() -> None:
    parts = ("edgeshare", "deviceplugin", "labeller", "sharemgr", "cuda_hook")
    found = {str(path.relative_to(ROOT)) for path in sources((".py",), *parts) if uses(path)}
    assert found == WALL.keys()


def test_the_hook_knows_no_wall_clock() -> None:
    found = [path for path in sources((".c", ".h"), "cuda_hook") if C_CALLS.search(path.read_text())]
    assert found == []
