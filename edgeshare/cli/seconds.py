"""A time in seconds, as an option takes it."""

import math
from typing import Any

import click


class Seconds(click.FloatRange):
    """A range of seconds. No number is in it, which a range of click's takes: what compares with it is neither less nor
    more."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Ends with wrong usage for what is no number in the range."""
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):
            self.fail(f"{value} is no number", param, ctx)
        return seconds
