"""What the page is told: to each who follows the newest there is, as server-sent events (HTML Standard, 9.2)."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping

from edgeshare.contract.units import NS_PER_MS, NS_PER_S
from edgeshare.shown.history import History, Key
from edgeshare.shown.picture import Picture
from edgeshare.waiting import Change, first_of

QUIET_S = 10.0
"""After so long without anything new a comment is sent, by which it is noticed that somebody has gone."""

CLUSTER_LOOK_S = 5.0
"""Between two looks at a cluster, for a terminal as for a page: each look reads all of its AcceleratorNodes."""

LOOKS_MISSED = 3
"""So many times as long as it is between two looks without an answer, and what was seen is stale."""

COMMENT = b":\n\n"

UNANSWERED = "it does not answer"


class Feed:
    """What was seen last, and whether it still holds. All of it is of the event loop in which it was made."""

    def __init__(self, patience_s: float, now_ns: Callable[[], int], unix_ns: Callable[[], int]) -> None:
        """After ``patience_s`` without an answer what was seen is stale. ``now_ns`` is monotonic."""
        self._patience_s = patience_s
        self._now_ns = now_ns
        self._unix_ns = unix_ns
        self._history = History()
        self._make: Callable[[], Picture] | None = None
        self._seen_unix_ns = 0
        self._stale = ""
        self._version = 0
        self._change = Change()
        self._event: tuple[int, bytes] = (-1, b"")
        """With its version, as the next: whoever follows gets the same."""
        self._making = asyncio.Lock()
        self._history_event: tuple[int, bytes] = (-1, b"")
        self._silence: asyncio.TimerHandle | None = None
        self._followers = 0
        self._left_out = False

    def take(self, make: Callable[[], Picture], used_percent: Mapping[Key, float]) -> None:
        """Something was seen: its picture is made when somebody wants it."""
        self._history.take(used_percent, self._now_ns())
        self._make = make
        self._seen_unix_ns = self._unix_ns()
        self._set("")
        loop = asyncio.get_running_loop()
        self._silence = loop.call_later(self._patience_s, self.lose, UNANSWERED)

    def lose(self, why: str) -> None:
        """Nothing could be seen now. What was seen before is shown on, as stale; that is told once for each reason."""
        self._history.advance(self._now_ns())
        if why != self._stale:
            self._set(why)

    def due(self) -> bool:
        """Whether the look whose time has come is worth its cost: while nobody follows only every other one is, as the
        history alone takes them in."""
        self._left_out = not (self._left_out or self._followers)
        return not self._left_out

    @property
    def is_followed(self) -> bool:
        """Whether anybody follows."""
        return self._followers > 0

    async def follow(self) -> AsyncGenerator[bytes, None]:
        """What one who follows is to be sent, for ever; what comes while one part is taken is told as it is then."""
        told, history_told = -1, -1
        self._followers += 1
        try:
            while True:
                change, version, history_version = self._change.next, self._version, self._history.version
                if told != version and version:
                    told, picture = await self._picture()
                    yield picture
                if history_told != history_version:
                    yield self._lines()
                history_told = history_version
                await first_of(change, timeout_s=QUIET_S)
                if not change.is_set():
                    yield COMMENT
        finally:
            self._followers -= 1

    def _set(self, stale: str) -> None:
        self._stale = stale
        self._version += 1
        self._change.tell()
        if self._silence is not None:
            self._silence.cancel()

    async def _picture(self) -> tuple[int, bytes]:
        """With the version that it is of."""
        async with self._making:
            if self._event[0] != self._version:
                version, seen_ms = self._version, self._seen_unix_ns // NS_PER_MS
                # A thread writes it down: of a large cluster that takes tens of milliseconds, and others wait for the
                # loop.
                self._event = version, await asyncio.to_thread(_picture_event, seen_ms, self._stale, self._make)
            return self._event

    def _lines(self) -> bytes:
        if self._history_event[0] != self._history.version:
            step_s = self._history.step_ns // NS_PER_S
            told = {"stepS": step_s, "steps": self._history.steps, "lines": self._history.lines()}
            self._history_event = self._history.version, _event("history", told)
        return self._history_event[1]


def _picture_event(seen_ms: int, stale: str, make: Callable[[], Picture] | None) -> bytes:
    """Without what makes it nothing was ever seen."""
    return _event("picture", {"seenMs": seen_ms, "stale": stale, "picture": None if make is None else make()})


def _event(kind: str, told: object) -> bytes:
    # In JSON a line's end stands as an escape, so that it is one line whatever a name holds.
    return f"event: {kind}\ndata: {json.dumps(told, separators=(',', ':'))}\n\n".encode()
