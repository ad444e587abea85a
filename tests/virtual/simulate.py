"""Simulates cases, each in a fork of its own: a line on stdin is a folder, a tab and a case in JSON; a line on stdout
is what happened, in JSON, or ``{"died": exit status}``; then the folder's file ``said`` has what the case said last.

``python simulate.py LIBRARIES HOOK DRIVER BUDGET_S``, preloaded with the virtual machine: ``world.py`` starts it. What
is imported is imported once. Between two cases this process does next to nothing: where memory lies in a case must not
depend on those before, since functions are told apart by their addresses.
"""

import gc
import json
import logging
import os
import sys
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from case import Case, read_case
from cffi import cparser
from native import Vt
from node import VirtualNode

from simgpu import create, machine
from simgpu.native import load

LINE_MOST = 1 << 22
"""Bytes of the longest line: eighty clients take a hundredth of it."""


def simulate(case: Case, root: Path, budget_s: int, libraries: Path, hook: Path, driver: Path) -> dict[str, object]:
    """Runs one case to its end in this very process, which is of no use afterwards."""
    logging.disable(logging.CRITICAL)
    vt = Vt(libraries)
    vt.init(case, budget_s, trace="VT_TRACE" in os.environ)
    return VirtualNode(case, vt, root, libraries, hook, driver).run()


def child(line: bytes, budget_s: int, *libraries: Path) -> None:
    """Simulates the case of a line. Never returns, whatever happens: the parent's loop is not the child's to go on
    with."""
    try:
        folder, _, text = line.decode().partition("\t")
        root = Path(folder)
        if "VT_TRACE" not in os.environ:
            os.dup2(os.open(root / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
        answer = json.dumps(simulate(read_case(text), root, budget_s, *libraries))
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()
        os._exit(0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        os._exit(1)


def parse_once() -> None:
    """A case reads the layout of its machine's file itself, as it did when the figures were recorded: that costs it
    contacts. What the headers mean, which takes longer than many a case, is found out once, here."""
    parser = cparser._get_parser()
    parser.parse = cache(parser.parse)
    cparser._preprocess = cache(cparser._preprocess)
    for module in (create, machine):
        module.load = load.__wrapped__


def main() -> None:
    *libraries, budget_s = sys.argv[1:]
    paths = [Path(each) for each in libraries]
    parse_once()
    # Once here, so that no case begins with reading modules.
    load()
    # It reads the clock, and when it runs depends on what this process did before.
    gc.disable()
    print("ready", flush=True)
    buffer = memoryview(bytearray(LINE_MOST))
    while True:
        size = 0
        while size == 0 or buffer[size - 1] != ord("\n"):
            more = os.readv(0, [buffer[size:]])
            if more == 0:
                return
            size += more
        pid = os.fork()
        if pid == 0:
            child(bytes(buffer[: size - 1]), int(budget_s), *paths)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status != 0:
            os.write(1, b'{"died": %d}\n' % status)


main()
