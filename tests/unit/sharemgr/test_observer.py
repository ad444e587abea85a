"""Looking at the devices ends when it is told to, wherever it is."""

import asyncio

import pytest

from edgeshare.inventory.sources import Inventories
from sharemgr.node import observer

STEPS = 40
"""More than two rounds of ``watch`` take, of the event loop's."""


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
        looking = asyncio.create_task(observer.watch(nothing, (), lambda: None, lambda observation: None, there))
        for _ in range(step):
            await asyncio.sleep(0)
        looking.cancel()
        for _ in range(STEPS):
            await asyncio.sleep(0)
        assert looking.done(), f"told to end after {step} steps, it went on"
