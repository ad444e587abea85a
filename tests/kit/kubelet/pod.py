"""What a kubelet knows of a pod, and how one fails there."""

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # The generated code has it for type checkers alone.
    pass


class AdmissionError(Exception):
    """A pod that failed at its admission, with what the plugin said."""


class StartError(Exception):
    """A container that was not started, with what the plugin said."""


@dataclass
class Pod:
    """What a kubelet knows of a pod: units asked for by each container, in their order."""

    name: str
    containers: dict[str, int]
    init: dict[str, int] = field(default_factory=dict)
    namespace: str = "team"
    uid: str = field(default_factory=lambda: f"{random.getrandbits(128):032x}")
