"""Simulates cases, one line of JSON each on stdin, each in a fork of its own; one line of JSON on stdout for each.

``python simulate.py LIBRARIES HOOK DRIVER BUDGET_S``, preloaded with the virtual machine: ``world.py`` starts it. What
is imported is imported once. A case that ends without an answer is told by its exit status and what it said on stderr.
"""

import json
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from case import Case, read_case
from native import Vt
from node import VirtualNode

SAID_MOST = 20_000
"""Characters of what a case said last that are told."""


def simulate(case: Case, root: Path, budget_s: int, libraries: Path, hook: Path, driver: Path) -> dict[str, object]:
    """Runs one case to its end in this very process, which is of no use afterwards."""
    logging.disable(logging.CRITICAL)
    vt = Vt(libraries)
    vt.init(case, budget_s, trace="VT_TRACE" in os.environ)
    return VirtualNode(case, vt, root, libraries, hook, driver).run()


def forked(case: Case, budget_s: int, *libraries: Path) -> dict[str, object]:
    """Runs one case in a child; what it answered, or ``{"died": exit status, "said": its stderr}``."""
    root = Path(tempfile.mkdtemp(prefix="virtual-", dir="/dev/shm"))
    try:
        pid = os.fork()
        if pid == 0:
            _child(case, root, budget_s, *libraries)
        _, status = os.waitpid(pid, 0)
        answer, said = root / "answer", root / "said"
        if os.waitstatus_to_exitcode(status) == 0 and answer.exists():
            return dict(json.loads(answer.read_text()))
        said.touch()
        return {"died": os.waitstatus_to_exitcode(status), "said": said.read_text(errors="replace")[-SAID_MOST:]}
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _child(case: Case, root: Path, budget_s: int, *libraries: Path) -> None:
    """Never returns, whatever happens: the parent's loop is not the child's to go on with."""
    try:
        if "VT_TRACE" not in os.environ:
            os.dup2(os.open(root / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
        answer = simulate(case, root, budget_s, *libraries)
        (root / "answer").write_text(json.dumps(answer))
        os._exit(0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        os._exit(1)


def main() -> None:
    *libraries, budget_s = sys.argv[1:]
    print("ready", flush=True)
    for line in sys.stdin:
        answer = forked(read_case(line), int(budget_s), *map(Path, libraries))
        print(json.dumps(answer), flush=True)


main()
