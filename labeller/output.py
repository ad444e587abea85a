"""What writes labels where others read them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Written:
    """What came of a write, or of a removal."""

    before: Mapping[str, str]
    """The labels that were ours."""
    after: Mapping[str, str]
    """Those that are now."""
    refused: tuple[str, ...] = ()
    """Labels that could not be written, each in a line that says why; those that could are."""

    @property
    def changed(self) -> str:
        """What changed, in a line; empty where nothing did."""
        gone = [f"-{label}" for label in sorted(self.before.keys() - self.after.keys())]
        set_now = sorted(self.after.items() - self.before.items())
        return " ".join([*(f"{label}={value}" for label, value in set_now), *gone])


class Output(Protocol):
    """Where labels are written. Both calls raise Unavailable where the API server cannot be asked or refuses; then the
    labels are as they were."""

    def write(self, labels: Mapping[str, str], complete: bool) -> Written:
        """Makes these the labels that are ours. ``complete`` is false where not all that there is could be found: then
        absent ones are added, and none is changed or goes."""

    def remove(self) -> Written:
        """Takes away every label that is ours, whatever it was made from."""
