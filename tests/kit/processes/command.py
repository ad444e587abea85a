"""Other programs, run to their end."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.kit.processes.errors import NodeError

ERROR_LINES = 15


def run(
    command: Sequence[str | Path],
    *,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> str:
    """Run `command` and return its standard output.

    Raises NodeError with the last lines it wrote to standard error when its exit status is not 0.
    """
    done = subprocess.run(command, input=stdin, env=env, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = "\n".join((done.stderr or done.stdout).splitlines()[-ERROR_LINES:])
        shown = " ".join(str(word) for word in command)
        raise NodeError(f"`{shown}` ended with status {done.returncode}:\n{said}")
    return done.stdout


def say(line: str) -> None:
    """Tell the person at the terminal what is being done, at once: standard output is for what was asked for."""
    print(line, file=sys.stderr, flush=True)
