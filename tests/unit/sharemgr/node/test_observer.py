"""Looking at the devices ends when it is told to, wherever it is."""

import asyncio
from collections.abc import Sequence

import pytest

from edgeshare.inventory.sources import Inventories
from sharemgr.node.machine import observer

STEPS = 40
"""More than two rounds of ``watch`` take, of the event loop's."""


class Glances:
    """Wants so many of them, and writes down what happens."""

    def __init__(self, count: int = 0) -> None:
        self.wanted = asyncio.Event()
        self.over = asyncio.Event()
        self.said: list[str] = []
        self._left = count
        if count:
            self.wanted.set()

    def begin(self) -> Sequence[str]:
        self.said.append("begin")
        return ("GPU-a",)

    def deliver(self, told: object) -> None:
        assert told == {}
        self.said.append("deliver")
        self._left -= 1
        if not self._left:
            self.wanted.clear()
            self.over.set()


async def test_glances_come_between_two_looks_as_long_as_they_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "INTERVAL_S", 3600)
    monkeypatch.setattr(observer, "GLANCE_S", 0)
    glances = Glances(2)
    said = glances.said
    looking = asyncio.create_task(
        observer.watch(
            Inventories(()),
            (),
            lambda: said.append("look"),
            lambda observation: said.append("seen"),
            asyncio.Event(),
            glances,
        )
    )
    await glances.over.wait()
    looking.cancel()
    assert said == ["look", "seen", "begin", "deliver", "begin", "deliver"]


@pytest.mark.parametrize("occupied", [True, False])
async def test_whoever_looks_ends_at_whatever_step_it_is_told_to(
    monkeypatch: pytest.MonkeyPatch, occupied: bool
) -> None:
    async def at_once(function: object) -> observer.Observation:
        return observer.Observation(0, (), {}, {}, {})

    monkeypatch.setattr(observer, "INTERVAL_S", 0)
    monkeypatch.setattr(observer.detached, "result", at_once)
    for step in range(STEPS):
        there = asyncio.Event()
        if occupied:
            there.set()
        nothing = Inventories(())
        glances = Glances()
        looking = asyncio.create_task(
            observer.watch(nothing, (), lambda: None, lambda observation: None, there, glances)
        )
        for _ in range(step):
            await asyncio.sleep(0)
        looking.cancel()
        for _ in range(STEPS):
            await asyncio.sleep(0)
        assert looking.done(), f"told to end after {step} steps, it went on"
