"""Values that stand in C and in Python, or in two parts that do not import each other, are the same in both."""

import re
from pathlib import Path

import pytest

from edgeshare.contract.units import NS_PER_MS, NS_PER_US
from edgeshare.inventory.nvml.values import MOST_MEMORY_BYTES
from sharemgr.cluster.placement.policies import aware
from sharemgr.node.config import Config
from sharemgr.node.turns.gate import Rule
from sharemgr.node.turns.settings import Settings

ROOT = Path(__file__).parents[3]
(LONGEST_SLICE_MS,) = (bound.le for bound in Config.model_fields["slice_ms"].metadata if hasattr(bound, "le"))


def in_c(path: str, name: str) -> int:
    """What a constant is in a file of the hook: a product of numbers, or a power of two."""
    text = (ROOT / "cuda_hook" / path).read_text()
    (value,) = re.findall(rf"\b{name}(?: =|) ([^,\n/]+?)(?:,|\n| /\*)", text)
    first, *factors = re.sub(r"UINT64_C\((\d+)\)|[()]", r"\1", value).split(" * ")
    if "<<" in first:
        one, shift = first.split(" << ")
        return int(one) << int(shift)
    product = int(first)
    for factor in factors:
        product *= int(factor)
    return product


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [
        ("src/backlog/room.c", "LONGEST_SLICE_NS", LONGEST_SLICE_MS * NS_PER_MS),
        ("core/shared/config.h", "ES_CONFIG_GRACE_MS", Config().grace_ms),
        ("core/shared/record.h", "ES_MEMORY_BYTES_MAX", MOST_MEMORY_BYTES),
        ("core/tools/clock.h", "ES_US", NS_PER_US),
        ("core/tools/clock.h", "ES_MS", NS_PER_MS),
    ],
)
def test_a_constant_of_the_hook_is_that_of_the_python_parts(path: str, name: str, value: int) -> None:
    assert in_c(path, name) == value


def test_what_is_set_nowhere_is_as_the_rule_of_turns_has_it() -> None:
    config, settings = Config(), Settings()
    set_ns = config.slice_ns, config.window_ns, config.queue_cap_ns, config.anticipation_ns
    assert set_ns == (settings.slice_ns, settings.window_ns, settings.queue_cap_ns, settings.anticipation_ns)
    assert config.kappa == Rule().kappa


def test_placing_knows_the_period_of_the_latency_class() -> None:
    assert Settings().budget_period_ns == aware.PERIOD_US * NS_PER_US
