"""Kubernetes quantities."""

import re
from functools import lru_cache

from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.units import MEMORY_MIB_MAX

QUANTITY = re.compile(
    r"\+?(?P<digits>[0-9]{1,20})(?:(?P<suffix>[num]|k|Ki|[MGTPE]i?)|[eE]\+?(?P<exponent>[0-9]{1,2}))?"
)
"""As the API server writes one (apimachinery, api/resource/quantity.go): no fraction where a smaller suffix,
or none, can say the same."""

POWERS = {suffix: power for power, suffix in enumerate("KMGTPE", start=1)}
PARTS = {"m": 10**3, "u": 10**6, "n": 10**9}

KNOWN = 1024
"""Quantities: a cluster's pods ask for a few hundred different ones."""


def whole_number(quantity: str, where: str) -> int:
    """A quantity as a number: 50, 16k, 8Ki, 5e1. Raises InvalidRequest, naming ``where``, for anything
    else."""
    number, parts = _parse(str(quantity)) or (0, 0)
    if parts != 1:
        raise InvalidRequest(f"{where} is {str(quantity)[:40]!r}: expected a whole number")
    return number


def memory_mib(quantity: str, where: str) -> int:
    """A cap on memory of each device, in MiB. Raises InvalidRequest, naming ``where``, for what no device has."""
    number = whole_number(quantity, where)
    if not 0 < number <= MEMORY_MIB_MAX:
        raise InvalidRequest(f"{where} is {number}: ask for 1 or more, and at most {MEMORY_MIB_MAX}, counted in MiB")
    return number


def thousandths(quantity: str, where: str) -> int:
    """A quantity in thousandths, rounded up: 250 of 250m, 8192000 of 8Ki. Raises InvalidRequest, naming ``where``, for
    anything else."""
    number, parts = _parse(str(quantity)) or (0, 0)
    if not parts:
        raise InvalidRequest(f"{where} is {str(quantity)[:40]!r}: expected a quantity")
    return -(-number * 1000 // parts)


@lru_cache(KNOWN)
def _parse(text: str) -> tuple[int, int] | None:
    """A number, and of which part of one: 250 and 1000 of 250m."""
    match = QUANTITY.fullmatch(text)
    if match is None:
        return None
    suffix = match["suffix"] or ""
    if suffix in PARTS:
        return int(match["digits"]), PARTS[suffix]
    base = 1024 if suffix.endswith("i") else 1000
    scale: int = base ** POWERS.get(suffix[:1].upper(), 0) * 10 ** int(match["exponent"] or 0)
    return int(match["digits"]) * scale, 1
