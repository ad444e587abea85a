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
from functools import cache, partial
from pathlib import Path
from threading import Lock

from cffi import FFI, cparser

from simgpu import create, machine
from simgpu.native import PACKAGE, load
from tests.kit.virtual.cases.case import Case, read_case
from tests.kit.virtual.native import Vt
from tests.kit.virtual.node import VirtualNode

LOCK = Lock()
LOCKED_BY_CREATE = (3, 2, 38)
LOCKED_BY_MACHINE = (3, 2, 3)
"""How often cffi took a lock when the figures were recorded: before it read, and after each of the headers. Whoever
makes the machine needed its types then, too."""
HEADERS = ("machine/layout.h", "observer/observer.h")
"""Which there were then."""

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


def read_layouts() -> None:
    """A case reads the layout of its machine's file itself, twice, as it did when the figures were recorded: that costs
    it contacts. What the headers mean, which takes longer than many a case, is found out once, here, and for who makes
    the machine all that it needs to know of it. Who opens it finds out what it needs when it does."""
    parser = cparser._get_parser()  # type: ignore[attr-defined]
    parser.parse = cache(parser.parse)
    layout = ffi, library = load.__wrapped__()
    for name in ("SIMGPU_GPUS", "simgpu_create"):
        getattr(library, name)
    ffi.typeof("struct simgpu_plan *")
    create.load = partial(read_again, layout, *LOCKED_BY_CREATE)  # type: ignore[assignment,attr-defined]
    machine.load = partial(read_again, load.__wrapped__(), *LOCKED_BY_MACHINE)  # type: ignore[assignment,attr-defined]


def read_again(layout: tuple[FFI, object], begun: int, *read: int) -> tuple[FFI, object]:
    """As ``load``, with what it makes contact with, but for what is known by now."""
    look(begun)
    for header, times in zip(HEADERS, read, strict=True):
        (PACKAGE / header).read_text()
        look(times)
    return layout


def look(times: int) -> None:
    """A lock of Python's that is taken looks at the clock."""
    for _ in range(times):
        with LOCK:
            pass


def main() -> None:
    *libraries, budget_s = sys.argv[1:]
    paths = [Path(each) for each in libraries]
    read_layouts()
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
