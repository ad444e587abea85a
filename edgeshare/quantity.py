"""Kubernetes quantities that have to be whole numbers."""

import re

from edgeshare.errors import InvalidRequest

QUANTITY = re.compile(r"\+?(?P<digits>[0-9]{1,20})(?:(?P<suffix>k|Ki|[MGTPE]i?)|[eE]\+?(?P<exponent>[0-9]{1,2}))?")
"""As the API server writes one (apimachinery, api/resource/quantity.go): no fraction where a smaller suffix,
or none, can say the same."""

POWERS = {suffix: power for power, suffix in enumerate("KMGTPE", start=1)}


def whole_number(quantity: str, where: str) -> int:
    """A quantity as a number: 50, 16k, 8Ki, 5e1. Raises InvalidRequest, naming ``where``, for anything
    else."""
    match = QUANTITY.fullmatch(str(quantity))
    if match is None:
        raise InvalidRequest(f"{where} is {str(quantity)[:40]!r}: expected a whole number")
    suffix = match["suffix"] or ""
    base = 1024 if suffix.endswith("i") else 1000
    scale: int = base ** POWERS.get(suffix[:1].upper(), 0) * 10 ** int(match["exponent"] or 0)
    return int(match["digits"]) * scale
