"""Paces that a simulated machine can have: what the driver's calls cost the host, and a switch of contexts the GPU."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Pace:
    """What things cost, in nanoseconds; a machine without a pace is one of zeros."""

    name: str
    launch_ns: int = 0
    """Of a kernel, a copy or a set, spent by the thread that submits it."""
    graph_launch_ns: int = 0
    graph_node_ns: int = 0
    """More, for each node of a graph that is launched."""
    event_record_ns: int = 0
    event_query_ns: int = 0
    """Of a stream, too."""
    context_switch_ns: int = 0
    """For so long a GPU runs nothing where it goes from one context to another."""


PACES = {
    pace.name: pace
    for pace in (
        # Graphs: NVIDIA, "Constant Time Launch for Straight-Line CUDA Graphs and Other Performance Enhancements":
        # 2.5 µs and about 1 ns a node from CUDA 12.6 on. The rest is of the usual order, and not one board's figures.
        Pace("workstation", 4_000, 2_500, 1, 1_000, 500, 100_000),
        # Graphs before CUDA 12.6, which most Jetsons have, by that article: 2 µs and 200 ns a node; here, as a launch,
        # nearly four times that.
        Pace("jetson", 15_000, 7_500, 750, 4_000, 2_000, 250_000),
    )
}
