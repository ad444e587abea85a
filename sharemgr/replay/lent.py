"""A lending policy as who lets pods onto the card: it sees what was asked, what was promised, and samples."""

from collections.abc import Sequence
from math import inf

from sharemgr.cluster.lending.card import Asked, Card, Decision, Policy, Resident, Sample, Use, decide
from sharemgr.cluster.state.profiles import SERIES_MAX, Ending, Profiles, Run
from sharemgr.replay.admissions import AFTER_BIND_S, Order, largest_first
from sharemgr.replay.world import Phase, Pod, World

MODEL = "Tesla-V100"
GPU = "GPU-0"


class Lending:
    """The policy, its card, and what it learns."""

    after_bind_s = AFTER_BIND_S

    def __init__(self, policy: Policy, world: World, profiles: Profiles, order: Order = largest_first) -> None:
        self._policy, self._profiles, self._order = policy, profiles, order
        self._known = profiles.on(MODEL)
        self._card = Card(world.usable_mib, Use(GPU, 0.0, world.usable_mib))
        self._residents: dict[Pod, Resident] = {}
        self._promised_mib: int | None = None
        """To the pod that was picked last."""
        self._until_s = inf

    def pick(self, queue: Sequence[Pod], now_s: float) -> Pod | None:
        """See simulation.Admission."""
        self._until_s = inf
        room = self._policy.room(self._card, self._known, now_s)
        decisions: dict[tuple[int, int, str], Decision] = {}
        for pod in sorted(queue, key=self._order):
            asked = pod.guarantee_mib, pod.engine.limit_mib, pod.engine.key
            decision = decisions.get(asked)
            if decision is None:
                decision = decide(self._policy, self._card, self._known, Asked(*asked), now_s, room)
                decisions[asked] = decision
            if decision.promised_mib is not None:
                self._promised_mib = decision.promised_mib
                return pod
            self._until_s = min(self._until_s, decision.until_s)
            patience_ends_s = pod.queued_at_s + self._policy.patience_s
            if now_s >= patience_ends_s:
                return None
            self._until_s = min(self._until_s, patience_ends_s)
        return None

    def until_s(self) -> float:
        """See simulation.Admission."""
        return self._until_s

    def bound(self, pod: Pod, now_s: float) -> None:
        """See simulation.Admission."""
        assert self._promised_mib is not None, "it was picked just now"
        asked = Asked(pod.guarantee_mib, pod.engine.limit_mib, pod.engine.key)
        resident = Resident(asked, now_s, self._promised_mib, Use(GPU, now_s, pod.engine.limit_mib))
        self._residents[pod] = resident
        self._card.residents.append(resident)
        self._card.last_bound_at_s = now_s

    def left(self, pod: Pod, now_s: float) -> None:
        """See simulation.Admission."""
        resident = self._residents.pop(pod)
        self._card.residents.remove(resident)
        if pod.phase is Phase.ENDED:
            samples = tuple(round(sample.used_mib) for sample in resident.use.samples[:SERIES_MAX])
            peak_mib = round(pod.held_mib)
            run = Run(
                ended_at_s=now_s,
                # One that was refused memory took less than it would have.
                ending=Ending.FAILED if pod.was_short else Ending.COMPLETED,
                limit_mib=pod.engine.limit_mib,
                peak_mib=max(peak_mib, *samples, 0),
                time_to_peak_s=pod.held_since_s - resident.bound_at_s,
                flat_s=now_s - pod.held_since_s,
                use_mib=samples,
            )
            self._profiles.learn(MODEL, pod.engine.key, run, now_s)

    def sampled(self, taken_at_s: float, used_mib: float, by_pod: Sequence[tuple[Pod, float]], now_s: float) -> None:
        """See simulation.Admission."""
        self._card.use.see(Sample(taken_at_s, used_mib, GPU), now_s)
        for pod, mib in by_pod:
            if pod in self._residents:
                self._residents[pod].use.see(Sample(taken_at_s, mib, GPU), now_s)
