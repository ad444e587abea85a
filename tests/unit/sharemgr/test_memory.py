"""What is told of a context that does not fit under an allocation's cap."""

from edgeshare.units import MIB
from sharemgr.node.memory import Memory


def test_a_context_that_does_not_fit_is_told_once_for_each_size_that_it_has() -> None:
    told: list[str] = []
    sizes: dict[str, int] = {}
    memory = Memory("one", 100 * MIB, ("GPU-a",), sizes, told.append)

    def tries(size_bytes: int) -> bool:
        sizes["GPU-a"] = size_bytes
        granted = [memory.reserve_context(1, 0).granted for _ in range(3)]
        assert memory.refused_context_bytes == (0 if granted[-1] else size_bytes)
        return granted[-1]

    assert not tries(300 * MIB)
    assert not tries(200 * MIB - 1)
    assert not tries(200 * MIB - 2)
    assert tries(10 * MIB)
    assert not tries(300 * MIB)
    first, second = told
    assert "takes about 300 MiB" in first
    assert "100 MiB of the cap of 100 MiB are free: raise the cap (edge/gpu-memory-mib" in first
    assert "takes about 200 MiB" in second
