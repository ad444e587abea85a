"""Other programs, and what is said where a release cannot be made."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

Command = Sequence[str | Path]


class ReleaseError(Exception):
    """What is wrong and what to do, in one line."""


def said(command: Command, folder: Path | None = None) -> str:
    """What a program of a moment writes, run in a folder. Raises ReleaseError with the last line of its errors."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ReleaseError(
            f"{command[0]} cannot be run ({error.strerror}): install it, or put it on the PATH"
        ) from error
    if done.returncode != 0:
        why = done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"]
        raise ReleaseError(f"{_shown(command)}: {why[-1]}")
    return done.stdout


def do(command: Command, env: Mapping[str, str]) -> None:
    """Run a program to its end, `env` added to its environment; what it says goes to standard error as it comes. Raises
    ReleaseError."""
    try:
        done = subprocess.run(command, env={**os.environ, **env}, stdout=2, check=False)
    except OSError as error:
        raise ReleaseError(
            f"{command[0]} cannot be run ({error.strerror}): install it, or put it on the PATH"
        ) from error
    if done.returncode != 0:
        raise ReleaseError(f"{_shown(command)} ended with status {done.returncode}: it said why above")


def _shown(command: Command) -> str:
    """A program and what it was to do."""
    return " ".join(Path(word).name for word in command[:2])
