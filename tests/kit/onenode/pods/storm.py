"""What becomes of a storm of short pods: what its binder knows, and which pods it makes, binds and strikes next."""

import random
from collections import Counter
from dataclasses import dataclass, field

from tests.kit.onenode.watches.pods_watch import End

SEED = 6
PERCENTS = (5, 10, 10, 15, 20, 20, 25, 30, 30, 40, 50, 100)
READY_TO_BIND = 40
"""Pods that wait for their Binding at most: made well before it, and bound in another order."""
BURST_BELOW = 30
"""Percent of all GPUs together that may be taken when the next burst is bound."""

STRIKE_BURST = 6
"""The smallest burst that is struck. A strike waits for one, and nothing else is bound meanwhile."""

SMALL = 30
"""Percent: so many pods of at most this fit on two GPUs that nobody has, whichever of them each one gets."""

Burst = list[tuple[str, tuple[str, ...]]]


@dataclass
class Storm:
    """What the binder knows."""

    gpus: list[str]
    pods: int
    """So many are to succeed."""
    strikes: list[str]
    """Those that are still to come."""
    every: int
    """Pods that succeed between two strikes."""
    strikes_done: int = 0
    dice: random.Random = field(default_factory=lambda: random.Random(SEED))
    percents: dict[str, int] = field(default_factory=dict)
    """Pod → percent, of all that were ever made."""
    waiting: list[str] = field(default_factory=list)
    """In the order in which they were made."""
    assigned: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of all that were ever bound: the record, made at the Binding."""
    live: set[str] = field(default_factory=set)
    succeeded: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    struck: set[str] = field(default_factory=set)
    """Bound while kubelet or plugin was away, or not over when one was killed."""
    out_of_order: set[str] = field(default_factory=set)
    """Bound while the kubelet was away, equal ones the youngest first."""
    twins: int = 0
    """Bindings of the same size to different GPUs, one right after the other."""
    last: tuple[int, tuple[str, ...]] | None = None
    """Percent and GPUs of the pod that was bound last."""

    @property
    def is_strike_due(self) -> bool:
        """Whether the next burst is to be struck."""
        done = len(self.succeeded)
        return bool(self.strikes) and (done >= self.every * (1 + self.strikes_done) or done >= self.pods)

    @property
    def has_twins(self) -> bool:
        """Whether units could often have been mistaken for another pod's."""
        return self.twins > self.pods / 10

    def load(self) -> Counter[str]:
        """GPU → percent that live pods have of it."""
        loads = Counter(dict.fromkeys(self.gpus, 0))
        for name in self.live:
            for gpu in self.assigned[name]:
                loads[gpu] += min(self.percents[name], 100)
        return loads

    def names_to_make(self) -> list[str]:
        """Pods that are to be made now, so that all that are to succeed do, some always wait, and there are enough for
        a burst that is to be struck."""
        wanted = max(0, self.pods - len(self.succeeded) - len(self.live) - len(self.waiting))
        room = READY_TO_BIND - len(self.waiting)
        percents: list[int] = []
        if room >= min(wanted, READY_TO_BIND // 2):
            percents = self.dice.choices(PERCENTS, k=min(room, wanted))
        if self.is_strike_due:
            small = sum(percent <= SMALL for percent in [*percents, *(self.percents[name] for name in self.waiting)])
            percents += self.dice.choices([each for each in PERCENTS if each <= SMALL], k=max(0, STRIKE_BURST - small))
        first = len(self.percents)
        made = {f"storm-{number}": percent for number, percent in enumerate(percents, first)}
        self.percents |= made
        self.waiting += made
        return list(made)

    def burst(self) -> Burst:
        """As many as fit, equal ones one after another and to different GPUs in turn, the youngest first."""
        loads = self.load()
        if sum(loads.values()) > BURST_BELOW:
            return []
        chosen: Burst = []
        last: dict[int, str] = {}
        order = self.dice.sample(self.waiting, len(self.waiting))
        if self.is_strike_due:
            order.sort(key=lambda name: self.percents[name] > SMALL)
        elif min(loads.values()) == 0:
            # Whole GPUs would wait to the end.
            order.sort(key=lambda name: self.percents[name] < 100)
        for name in order:
            percent = self.percents[name]
            fitting = [gpu for gpu in self.gpus if loads[gpu] + percent <= 100]
            if fitting:
                gpu = last[percent] = self.dice.choice([gpu for gpu in fitting if gpu != last.get(percent)] or fitting)
                loads[gpu] += percent
                chosen.append((name, (gpu,)))
        made = {name: place for place, name in enumerate(self.waiting)}
        chosen.sort(key=lambda each: (self.percents[each[0]], -made[each[0]]))
        return self._in_turn(chosen)

    def _in_turn(self, chosen: Burst) -> Burst:
        ordered: Burst = []
        while chosen:
            before = ordered[-1] if ordered else None

            def is_twin(each: tuple[str, tuple[str, ...]], before: tuple[str, tuple[str, ...]] | None = before) -> bool:
                same = before is not None and self.percents[each[0]] == self.percents[before[0]]
                return before is not None and same and each[1] != before[1]

            following = next(filter(is_twin, chosen), chosen[0])
            chosen.remove(following)
            ordered.append(following)
        return ordered

    def bound(self, name: str, gpus: tuple[str, ...]) -> None:
        """Writes down that a pod is assigned these."""
        percent = self.percents[name]
        self.twins += self.last is not None and self.last[0] == percent and self.last[1] != gpus
        self.last = percent, gpus
        self.assigned[name] = gpus
        self.live.add(name)
        self.waiting.remove(name)

    def ended(self, end: End) -> None:
        """A pod of the storm is over."""
        if end.pod in self.live:
            self.live.remove(end.pod)
            if end.succeeded:
                self.succeeded.add(end.pod)
            else:
                self.failed[end.pod] = end.why
