"""What the scripts share: who they run as, and how they fail."""

import os
import shutil
import sys
from collections.abc import Callable

from tests.kit.processes.errors import NodeError
from tests.kit.programs.cache import cache_dir


def main(action: Callable[[], None]) -> None:
    """Run `action` as root, through sudo where there is one; a NodeError ends in its message and status 1."""
    if os.geteuid() != 0 and shutil.which("sudo"):
        os.execvp("sudo", ["sudo", "env", f"EDGESHARE_CACHE={cache_dir()}", sys.executable, *sys.orig_argv[1:]])
    try:
        action()
    except NodeError as error:
        sys.exit(f"error: {error}")
