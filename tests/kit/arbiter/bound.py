"""What the rule of turns promises of shares over a window, for programs with kernels of a length."""

from edgeshare.contract.units import NS_PER_S as S
from sharemgr.node.turns.settings import Settings
from tests.kit.sim.device.programs import MESSAGE_NS

SETTINGS = Settings()
WINDOW_NS = 10 * S


def turn_ns(kernel_ns: int) -> int:
    """q of the rule: what a turn costs at most."""
    longest_ns = SETTINGS.queue_cap_ns + kernel_ns + SETTINGS.anticipation_ns + 2 * MESSAGE_NS
    return SETTINGS.slice_ns + longest_ns


def bound_percent(kernel_ns: int) -> float:
    """The rule's bound on the error of a share over a window, in points."""
    return 100 * 2 * turn_ns(kernel_ns) / WINDOW_NS


def expected(requests: list[int]) -> dict[str, float]:
    """The share of each of a0, a1, … in percent, where all of them want the device."""
    return {f"a{index}": 100 * request / sum(requests) for index, request in enumerate(requests)}
