"""How fast the simulated world is: what contacts with it cost, and how late who waited wakes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Pace:
    """Costs in ns of simulated time; `machine` is the simulated machine's own pace, where it has one."""

    clock_ns: int = 40
    futex_ns: int = 800
    io_ns: int = 2_000
    mutex_ns: int = 40
    barrier_ns: int = 10_000
    create_ns: int = 10_000
    step_ns: int = 2_000
    wake_ns: int = 5_000
    wake_spread_ns: int = 0
    launch_ns: int = 4_500
    """Processor time that the program spends on each launch before it calls the driver."""
    machine: str | None = None


PACES = {
    "plain": Pace(),
    "workstation": Pace(launch_ns=500, wake_ns=30_000, wake_spread_ns=20_000, machine="workstation"),
    "jetson": Pace(
        clock_ns=80,
        futex_ns=2_000,
        io_ns=6_000,
        mutex_ns=80,
        barrier_ns=20_000,
        create_ns=40_000,
        step_ns=6_000,
        wake_ns=30_000,
        wake_spread_ns=20_000,
        launch_ns=1_500,
        machine="jetson",
    ),
}
"""``plain``: a server's processor as `bench floors` finds it, and a driver whose calls return at once. ``workstation``
and ``jetson``: a launch costs 4 and 15 us in the driver, and an interrupt wakes 10 to 50 us late."""

PYTHON_SCALE = 5
"""What the manager does between two contacts takes so many times what C code takes."""
