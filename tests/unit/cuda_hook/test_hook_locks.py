"""Who needs which lock of the hook is declared in its sources (core/tools/lock.h), and clang's analysis finds whoever
does not hold it."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from tests.kit.programs.compiled import HOOK_INCLUDES, HOOK_SOURCES, compiled

WARNINGS = ("-Wall", "-Wextra", "-Wthread-safety", "-Werror")
CLANG = (sys.executable, "-m", "ziglang", "cc", "-std=c11", "-D_GNU_SOURCE", *WARNINGS)

FORGETS = """
#include "backlog/backlog.h"

uint64_t es_probe(void);
uint64_t es_probe(void)
{
    uint64_t over_ns;

    over_ns = es_backlog.over_ns;
    return over_ns;
}
"""
READS = "over_ns = es_backlog.over_ns;"
HOLDS = FORGETS.replace(READS, f"es_lock_take(&es_state_lock); {READS} es_lock_give(&es_state_lock);")

SOURCES = [source for source in HOOK_SOURCES if source.suffix == ".c"]


def analysed(folder: Path, *sources: Path) -> "subprocess.CompletedProcess[str]":
    """What clang's analysis has to say of these files."""
    command = [*CLANG, *HOOK_INCLUDES, "-c", *map(str, sources)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_every_lock_is_held_where_it_is_needed() -> None:
    # Once for each state of the sources, and for each version of what looks.
    by = f"-DBY_ZIGLANG={version('ziglang')}"
    compiled("done", [*CLANG, by, *HOOK_INCLUDES, "-c", *map(str, SOURCES)], ["touch", "done"])


def test_one_that_is_forgotten_is_seen(tmp_path: Path) -> None:
    probe = tmp_path / "probe.c"
    probe.write_text(FORGETS)
    assert "requires holding mutex 'es_state_lock'" in analysed(tmp_path, probe).stderr
    probe.write_text(HOLDS)
    assert analysed(tmp_path, probe).returncode == 0
