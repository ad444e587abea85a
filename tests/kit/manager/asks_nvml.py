"""Asks NVML all that the product asks, with one of its functions refused after another, each in a process of its own.

``python -m tests.kit.manager.asks_nvml ROOT`` prints a line for each case: the function, the refusal, whether it came
only after a look, what was found, and what the log said.
"""

import json
import logging
import os
import sys
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pynvml

from edgeshare.contract.errors import EdgeshareError
from edgeshare.inventory.nvml import device_health as nvml_health
from edgeshare.inventory.nvml.cards import read_cards
from edgeshare.inventory.nvml.device_health import NvmlHealth
from edgeshare.inventory.nvml.nvml import NvmlInventory
from edgeshare.inventory.nvml.usage import NvmlUsage
from edgeshare.inventory.tree import Tree
from simgpu.machine import Machine
from simgpu.nvml_profiles import REFUSALS

LOOKS = 3


class Called:
    """The functions of NVML that were called, as the binding finds them by their names."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._real = pynvml._nvmlGetFunctionPointer

    def function(self, name: str) -> Callable[..., Any]:
        self.names.add(name)
        found: Callable[..., Any] = self._real(name)
        return found


def ask(root: Path, refuse: Callable[[], None]) -> dict[str, Any]:
    """What inventory, health, cards and usage find; ``refuse`` is called after each one's first look."""
    found: dict[str, Any] = {}
    tree = Tree(root)
    inventory = NvmlInventory(root)
    health = NvmlHealth(lambda fault: None)
    usage = NvmlUsage(tree)

    def looks(name: str, look: Callable[[], Any], close: Callable[[], None]) -> None:
        try:
            for _ in range(LOOKS):
                found[name] = look()
                refuse()
        except EdgeshareError as error:
            found[name] = str(error)
        finally:
            close()

    def devices() -> list[tuple[str, bool, str, int, str]]:
        if not found.get("open"):
            found["open"] = bool(inventory.open())
        listed = inventory.devices()
        found["told"] = []
        for device in listed:
            memory = [each.memory_bytes for each in inventory.processes(device.id) or ()]
            found.setdefault("active", []).append(sorted(inventory.active(device.id)))
            numbers = (inventory.memory_used_mib, inventory.busy_percent, inventory.temperature_c, inventory.energy_mj)
            found["told"].append([*memory, *(each(device.id) for each in numbers)])
        return [(each.id, each.healthy, each.cause, each.memory_mib, each.model) for each in listed]

    def vitals() -> dict[str, str]:
        if not found.get("health open"):
            found["health open"] = bool(health.open({}))
        return {device_id: each.error for device_id, each in health.look().items()}

    def cards() -> list[tuple[str, int, int, str]]:
        said = read_cards(tree)
        return [(card.id, card.total_bytes, len(card.mig_devices), card.name) for card in said.found]

    looks("devices", devices, inventory.close)
    looks("health", vitals, health.close if not isinstance(found.get("devices"), str) else lambda: None)
    looks("cards", cards, lambda: None)
    looks("usage", lambda: [(each.id, each.model) for each in usage.look()], usage.close)
    return found


def case(root: Path, names: tuple[str, ...], refusal: str, later: bool) -> None:
    """Prints what comes of one case; to be called in a process that ends with it."""
    lines: list[str] = []
    handler = logging.Handler(logging.INFO)
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    called = Called()
    pynvml._nvmlGetFunctionPointer = called.function

    def refuse() -> None:
        tell(names, refusal)

    if not later:
        refuse()
    told: dict[str, Any] = {"names": names, "refusal": refusal, "later": later}
    try:
        told["found"] = ask(root, refuse)
    except Exception:
        told["traceback"] = traceback.format_exc()
    print(json.dumps(told | {"log": lines, "called": sorted(called.names)}), flush=True)


@cache
def machine() -> Machine:
    """Opened once, before any child: that takes longer than a case."""
    return Machine()


def tell(names: tuple[str, ...], answer: str) -> None:
    for name in names:
        machine().set_nvml_answer(name, answer)


def apart(root: Path, names: tuple[str, ...], refusal: str, later: bool) -> None:
    """The same in a child: what a library was told, and what was said once, is a process's own."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            case(root, names, refusal, later)
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    tell(names, "as-ever")


def main() -> None:
    """All cases: those of the functions named after the root, joined by commas where they are refused together."""
    root = Path(sys.argv[1])
    nvml_health.EVENT_WAIT_MS = 1
    machine()
    if len(sys.argv) == 2:
        apart(root, (), "", False)
    for together in sys.argv[2:]:
        for refusal in REFUSALS:
            for later in (False, True):
                apart(root, tuple(together.split(",")), refusal, later)


if __name__ == "__main__":
    main()
