"""The classes of a share: how a pod's annotation, ``edgeshare run``, records and status name them, and their numbers in
the proto files. What is no class is read as batch where it came over gRPC, and refused where a person wrote it."""

from typing import Literal

ShareClass = Literal["batch", "latency"]

BATCH: ShareClass = "batch"
LATENCY: ShareClass = "latency"
"""Goes before others' turns that it is owed, for short requests (``sharemgr/node/turns/share/latency.py``)."""

NUMBERS: dict[ShareClass, int] = {BATCH: 1, LATENCY: 2}
"""As in ``enum ShareClass`` of ``proto/edgeshare/v1/allocations.proto``."""

BY_WORD: dict[str, ShareClass] = {word: word for word in NUMBERS}


def class_of(number: int) -> ShareClass:
    """The class that was told by its number."""
    return LATENCY if number == NUMBERS[LATENCY] else BATCH
