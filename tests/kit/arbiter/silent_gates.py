"""Gates of an allocation whose clients say nothing: what a test is about it says by a class of its own."""

from collections.abc import Collection, Iterable

from sharemgr.node.turns.demand import Use


class SilentGates:
    """As a device's arbiter sees them (``sharemgr.node.clients.device.Gates``)."""

    def open_gates(self, number: int, contended: bool, now_ns: int, free_at_ns: int, ends_at_ns: int) -> None: ...

    def share_gates(self, tells: bool, cap_ns: int) -> None: ...

    def used(self, now_ns: int, charges: bool) -> Use:
        return Use()

    def unheard_ns(self) -> int:
        return 0

    def prolong_gates(self, ends_at_ns: int) -> None: ...

    def close_gates(self) -> None: ...

    def foretold(self) -> Iterable[tuple[int, int]]:
        return ()

    def promise(self, looks_at_ns: int) -> None: ...

    def hear(self, now_ns: int) -> None: ...

    def stopped(self) -> Collection[int]:
        return ()

    def accuse(self, told_ns: int, used_ns: int, now_ns: int) -> None: ...
