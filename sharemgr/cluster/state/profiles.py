"""What programs really use: a profile for each key on each model of device, learned from runs that are over.

A key stands for a program: what its pod's label says, else its image, command and arguments. A run is first judged:
figures that cannot be (not a number, below zero, more memory than its limit) are refused, and nothing of it is kept.
Of the others all is kept but the memory of a run that says nothing of what it would have taken: one that failed, was
taken back, reached its limit, or ended before its use had settled.

A profile ages by runs and by time: it speaks of the last sixteen runs, none of which ended more than thirty days ago.
Its memory is the most of those runs. So a run that lies low lowers nothing before sixteen of them, and one that lies
high (its limit at most) costs its own pods room until sixteen others have come.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from math import isfinite
from statistics import median
from typing import Any

from edgeshare.contract.errors import InvalidRequest

VERSION = 1
"""Of the document that profiles are kept in."""
RUNS_MAX = 16
"""How many a profile speaks of."""
RUN_AGE_MAX_S = 30 * 24 * 3600.0
CLOCK_TOLERANCE_S = 60.0
"""How far a node's clock may be ahead."""
PROFILES_MAX = 10_000
"""Of all keys and models together; the one that was learned from longest ago goes first."""
NAME_LENGTH_MAX = 253
"""Of a key and of a model, as of a Kubernetes name."""
FLAT_MIN_S = 6.0
"""A run's use had settled where it was the same for so long when it ended."""
SERIES_MAX = 64
"""Samples of a run that are kept, from its beginning."""
LIMIT_REACHED = 0.995
"""Allocations are made of pages of 2 MiB, so that a program stops just below its limit."""


class Ending(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    TAKEN_BACK = "taken back"


@dataclass(frozen=True, slots=True)
class Run:
    """What was measured of one run. Times of kernels and of thinking are in microseconds; parts are of its duration."""

    ended_at_s: float
    ending: Ending
    limit_mib: int
    peak_mib: int
    time_to_peak_s: float = 0.0
    """From its beginning until it first held within 2 % of its peak."""
    flat_s: float = 0.0
    """How long its use had been within 2 % of one value when it ended."""
    use_mib: tuple[int, ...] = ()
    """Samples of its memory, from its beginning, one each scrape."""
    gpu_percent: float = 0.0
    """Of one GPU's time, executing."""
    held_percent: float = 0.0
    """Its gate was open."""
    waited_percent: float = 0.0
    """It had work and its gate was shut."""
    kernel_p50_us: float = 0.0
    kernel_longest_us: float = 0.0
    think_us: float = 0.0
    """Between the end of its work on the GPU and the next launch, in the mean."""
    slow_down: float = 1.0
    """How many times as long a kernel took beside a neighbour as alone."""

    def check(self) -> None:
        """Raises InvalidRequest where it cannot be."""
        for name in FIGURES:
            value = getattr(self, name)
            for number in value if name == "use_mib" else (value,):
                if type(number) is int and number >= 0:
                    continue
                if isinstance(number, bool) or not isinstance(number, int | float) or not isfinite(number):
                    raise InvalidRequest(f"a run's {name} is {number!r}: a number is needed")
                if number < 0:
                    raise InvalidRequest(f"a run's {name} is {number}: it cannot be below zero")
            if name.endswith("_percent") and value > 100:
                raise InvalidRequest(f"a run's {name} is {value}: at most 100")
        if self.peak_mib > self.limit_mib or any(mib > self.peak_mib for mib in self.use_mib):
            raise InvalidRequest(
                f"a run held {max(self.peak_mib, *self.use_mib, 0)} MiB, peak {self.peak_mib}, limit {self.limit_mib}: "
                "no sample is above the peak, nor the peak above the limit"
            )
        if len(self.use_mib) > SERIES_MAX:
            raise InvalidRequest(f"a run has {len(self.use_mib)} samples of memory: at most {SERIES_MAX} are kept")
        if self.slow_down < 1:
            raise InvalidRequest(f"a run's slow_down is {self.slow_down}: at least 1")

    @property
    def tells_memory(self) -> bool:
        """Whether its peak is what the program takes."""
        stopped = self.ending is not Ending.COMPLETED or self.peak_mib >= LIMIT_REACHED * self.limit_mib
        return not stopped and self.flat_s >= FLAT_MIN_S


FIGURES = tuple(field.name for field in fields(Run) if field.name != "ending")
"""What is a number of a run, or are numbers."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What a program used in its last runs."""

    runs: tuple[Run, ...]
    """Oldest first."""
    peak_mib: int | None
    """The most memory; None where no run tells."""
    time_to_peak_s: float
    """The longest; 0 where no run tells."""
    use_mib: tuple[int, ...]
    """Samples of the last run that tells of memory."""
    gpu_percent: float
    held_percent: float
    waited_percent: float
    kernel_p50_us: float
    kernel_longest_us: float
    think_us: float
    slow_down: float

    @classmethod
    def of(cls, runs: tuple[Run, ...]) -> "Profile":
        """What these runs, at least one, say together: the worst where others suffer by it, else the median."""
        telling = [run for run in runs if run.tells_memory]
        return cls(
            runs=runs,
            peak_mib=max((run.peak_mib for run in telling), default=None),
            time_to_peak_s=max((run.time_to_peak_s for run in telling), default=0.0),
            use_mib=telling[-1].use_mib if telling else (),
            gpu_percent=median(run.gpu_percent for run in runs),
            held_percent=median(run.held_percent for run in runs),
            waited_percent=median(run.waited_percent for run in runs),
            kernel_p50_us=median(run.kernel_p50_us for run in runs),
            kernel_longest_us=max(run.kernel_longest_us for run in runs),
            think_us=median(run.think_us for run in runs),
            slow_down=max(run.slow_down for run in runs),
        )

    def learn(self, run: Run, now_s: float) -> "Profile":
        """With one run more, in whatever order they are told of."""
        runs = sorted((*self.runs, run), key=lambda each: each.ended_at_s)
        return Profile.of(_kept([each for each in runs if each.ended_at_s >= now_s - RUN_AGE_MAX_S] or [run]))


def _kept(runs: list[Run]) -> tuple[Run, ...]:
    """No more runs than a profile speaks of. Those that say nothing of memory go first: a program that fails again and
    again loses nothing of what is known of it."""
    spare = len(runs) - RUNS_MAX
    silent = [number for number, run in enumerate(runs) if not run.tells_memory]
    telling = [number for number, run in enumerate(runs) if run.tells_memory]
    gone = set((silent + telling)[: max(0, spare)])
    return tuple(run for number, run in enumerate(runs) if number not in gone)


class Profiles:
    """All that is known, by model of device and key."""

    def __init__(self) -> None:
        self._of_model: dict[str, dict[str, Profile]] = {}
        self._learned: dict[tuple[str, str], None] = {}
        """Models and keys, those that were learned from longest ago first."""

    def __len__(self) -> int:
        return len(self._learned)

    def on(self, model: str) -> Mapping[str, Profile]:
        """Key → profile, on that model, as they are learned."""
        return self._of_model.setdefault(model, {})

    def learn(self, model: str, key: str, run: Run, now_s: float) -> None:
        """Takes in a run that is over. Raises InvalidRequest where its figures cannot be."""
        for what, name in (("model", model), ("key", key)):
            if not 0 < len(name) <= NAME_LENGTH_MAX:
                raise InvalidRequest(f"a profile's {what} has {len(name)} characters: 1 to {NAME_LENGTH_MAX}")
        run.check()
        if run.ended_at_s > now_s + CLOCK_TOLERANCE_S:
            raise InvalidRequest(f"a run ended {run.ended_at_s - now_s:.0f} s from now: a clock is wrong")
        of_model = self._of_model.setdefault(model, {})
        of_model[key] = of_model[key].learn(run, now_s) if key in of_model else Profile.of((run,))
        self._learned.pop((model, key), None)
        self._learned[model, key] = None
        if len(self._learned) > PROFILES_MAX:
            oldest_model, oldest_key = next(iter(self._learned))
            del self._learned[oldest_model, oldest_key], self._of_model[oldest_model][oldest_key]

    def document(self) -> dict[str, Any]:
        """As it is kept: what ``parse`` reads."""
        rows = [
            {"model": model, "key": key, "runs": [asdict(run) for run in self._of_model[model][key].runs]}
            for model, key in self._learned
        ]
        return {"version": VERSION, "profiles": rows}

    @classmethod
    def parse(cls, document: object, now_s: float) -> "Profiles":
        """Reads what ``document`` wrote. Raises InvalidRequest where it is of another version, or cannot be."""
        if not isinstance(document, dict) or not isinstance(document.get("profiles"), list):
            raise InvalidRequest("profiles: an object with a version and a list of profiles is needed")
        if document.get("version") != VERSION:
            raise InvalidRequest(f"profiles of version {document.get('version')!r}: this edgeshare reads {VERSION}")
        profiles = cls()
        for number, row in enumerate(document["profiles"]):
            try:
                for run in row["runs"]:
                    profiles.learn(str(row["model"]), str(row["key"]), _run(run), now_s)
            except (KeyError, TypeError, ValueError, InvalidRequest) as error:
                raise InvalidRequest(f"profiles: row {number}: {error or type(error).__name__}") from None
        return profiles


def _run(record: Mapping[str, Any]) -> Run:
    """Raises KeyError, TypeError or ValueError where it is none."""
    run = Run(**record)
    return replace(run, ending=Ending(run.ending), use_mib=tuple(run.use_mib))
