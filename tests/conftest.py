"""What every kind of test needs."""

import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).parent.parent

# How long an example takes, or the choice of one, is the machine's to say.
ANY_TIME = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("same", ANY_TIME, derandomize=True, print_blob=False)
hypothesis.settings.register_profile("explore", ANY_TIME, print_blob=True)
# The same change must not pass once and fail once; who looks for more says --hypothesis-profile=explore.
hypothesis.settings.load_profile("same")


def pytest_sessionstart() -> None:
    """Refuses to test what was compiled before its source was changed."""
    for compiled in ROOT.glob("*__mypyc.*.so"):
        newer = [path for path in ROOT.glob("sharemgr/node/*.py") if path.stat().st_mtime > compiled.stat().st_mtime]
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
