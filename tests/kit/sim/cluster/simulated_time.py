"""Time that jumps, and the log of a run."""

import asyncio
from collections import deque
from collections.abc import Callable


class JumpingLoop(asyncio.BaseEventLoop):
    """An event loop in which waiting takes no time: when nothing is left to do now, it is at once the next timer's
    turn."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0
        self._selector = self

    def time(self) -> float:
        """Simulated seconds."""
        return self._now_s

    def select(self, timeout: float | None) -> list[object]:
        """What the loop would wait in."""
        if timeout is None:
            raise AssertionError("everybody waits for somebody else")
        self._now_s += max(0.0, timeout)
        return []

    def _process_events(self, events: list[object]) -> None:
        assert not events

    def _write_to_self(self) -> None:
        """There is one thread."""


class Log:
    """What happened last, for whoever has to understand a run that failed."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._lines: deque[tuple[float, str]] = deque(maxlen=150)
        self._now_s = now_s
        self.digest = 0

    def __call__(self, line: str) -> None:
        self._lines.append((self._now_s(), line))
        self.digest = (self.digest * 1_000_003 + sum(line.encode()) + round(self._now_s() * 1e6)) % (1 << 61)

    def __str__(self) -> str:
        return "\n".join(f"{when_s:10.4f}  {line}" for when_s, line in self._lines)
