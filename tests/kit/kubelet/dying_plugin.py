"""The edgeshare command, whose device plugin is killed in the midst of an Allocate: just before one contact with the
disk, or when it would answer.

    python dying_plugin.py EVENT PATH deviceplugin …

EVENT is one of Python's audit events, PATH a regular expression that is found in a path that it tells of; or EVENT is
``answer``.
"""

import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

from deviceplugin.kubelet.service import Service
from edgeshare.cli import main


class Death:
    """Comes while an Allocate is under way."""

    def __init__(self, event: str, path: str) -> None:
        self.wanted = (event, path)
        self.is_near = False

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """What Python tells before each contact with the disk."""
        if self.is_near and event == self.wanted[0]:
            paths = [str(path) for path in arguments if isinstance(path, str | Path)]
            if any(re.search(self.wanted[1], path) for path in paths):
                die()

    def before_answering(self) -> None:
        """The last moment."""
        if self.wanted[0] == "answer":
            die()


def die() -> None:
    """As a container that is killed."""
    os.kill(os.getpid(), signal.SIGKILL)


def bring(death: Death) -> None:
    """Lets it come to this process."""
    allocate = Service.Allocate

    async def dying(self: Service, *call: Any) -> Any:
        death.is_near = True
        answer = await allocate(self, *call)
        death.before_answering()
        return answer

    Service.Allocate = dying  # type: ignore[assignment,method-assign]
    sys.addaudithook(death.audit)


if __name__ == "__main__":
    _, wanted_event, wanted_path, *command = sys.argv
    bring(Death(wanted_event, wanted_path))
    sys.argv[1:] = command
    main()
