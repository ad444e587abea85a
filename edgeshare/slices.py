"""Slices of an EdgeTPU, for an application that keeps the device open or uses it several times in a row.

    with edgeshare.slice() as turn:
        if turn.fresh:
            interpreter = load_model()
        interpreter.invoke()

Without it a process has its slice from the first open of the device to the last close. The work is done by the hook
library; where that is not preloaded, and in a process without a share of an EdgeTPU, a slice
begins at once and ends without effect.
"""

import ctypes
import os
from types import TracebackType
from typing import Self


class slice:  # noqa: N801, A001 - read as a word of the language: with edgeshare.slice()
    """One slice, as a context manager. Slices may be nested; those of several threads are one."""

    def __init__(self) -> None:
        self.fresh = False
        """Whether another process may have had the device since this one had it, or what was set up on a descriptor is
        gone: then what was loaded has to be loaded again. Known inside the block."""
        self.kept = False
        """Whether the device could not be given back at the end, because it is mapped or another thread uses it: close
        it, so that those who wait can have it. Known after the block."""

    def __enter__(self) -> Self:
        """Waits for the slice; raises OSError where the device cannot be had."""
        result = _call("edgeshare_slice_begin")
        if result < 0:
            error = ctypes.get_errno()
            raise OSError(error, f"the EdgeTPU cannot be had: {os.strerror(error)}")
        self.fresh = result > 0
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kept = _call("edgeshare_slice_end") > 0


def _call(name: str) -> int:
    """Calls a function of the hook (edgeshare_slice.h); 0 where there is none. Other threads run meanwhile."""
    try:
        function = getattr(ctypes.CDLL(None, use_errno=True), name)
    except AttributeError:
        return 0
    return int(function())
