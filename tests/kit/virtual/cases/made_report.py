"""What a run could have come to: reports that nobody simulated, for tests of what judges them. Pure."""

from edgeshare.contract.units import NS_PER_MS
from tests.kit.virtual.cases.case import Case
from tests.kit.virtual.cases.report import Report


def made_report(case: Case, used_percent: float, told_percent: float | None = None) -> Report:
    """Each client used so much of the GPU in the measured time, and that was told of it where nothing else is said; no
    call failed, and nobody has memory."""
    measured_ns = case.measure_ms * NS_PER_MS
    used_ns, told_ns = (
        dict.fromkeys(case.names, round(percent * measured_ns / 100))
        for percent in (used_percent, used_percent if told_percent is None else told_percent)
    )
    nothing = dict.fromkeys(case.names, 0)
    begin = {"now_ns": 0, "executed_ns": nothing, "gpu_ns": nothing, "told_of_all": True, "memory_bytes": nothing}
    end = begin | {"now_ns": measured_ns, "executed_ns": used_ns, "gpu_ns": told_ns}
    outcomes = {name: {"error": 0, "refused": 0, "held_bytes": 0} for name in case.names}
    return Report(case, (begin, end), outcomes, {}, {}, {}, (), ())
