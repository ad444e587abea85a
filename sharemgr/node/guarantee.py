"""What an allocation was guaranteed, by what it used and waited for, and for how long it did not get it."""

from collections.abc import Iterable

from edgeshare.contract.guarantee import Guarantee


def judge(request_percent: int, got_ns: int, waited_ns: int, of_ns: int, usual_part: float = 0) -> Guarantee:
    """By what an allocation used and waited for within ``of_ns``. Who waited and never ran wants all that there is.
    Where others are let in beside it, so that it also waits for their kernels, ``usual_part`` of the device is what it
    uses where nobody is in its way; 0: it is not so."""
    free_ns = max(1, of_ns - waited_ns)
    wanted_percent = min(100.0, 100 * got_ns / free_ns)
    if usual_part:
        wanted_percent = max(100 * got_ns / of_ns, 100 * usual_part)
    elif got_ns == 0 and waited_ns > 0:
        wanted_percent = 100.0
    return Guarantee(wanted_percent, min(wanted_percent, request_percent), 100 * got_ns / of_ns)


class Misses:
    """For how long guarantees were missed, by allocation, as somebody looks again and again."""

    def __init__(self) -> None:
        self._looked_ns = 0
        self._missed_ns: dict[str, int] = {}

    def look(self, missed: Iterable[str], now_ns: int) -> None:
        """The guarantees of these allocations are missed now, and were since the last look."""
        elapsed_ns = now_ns - self._looked_ns if self._looked_ns else 0
        self._looked_ns = now_ns
        for allocation_id in missed:
            self._missed_ns[allocation_id] = self._missed_ns.get(allocation_id, 0) + elapsed_ns

    def missed_ns(self, allocation_id: str) -> int:
        """How long that was until the last look."""
        return self._missed_ns.get(allocation_id, 0)

    def forget(self, allocation_id: str) -> None:
        """The allocation is gone; another may come by its id."""
        self._missed_ns.pop(allocation_id, None)
