"""Many GPUs at once: the same promises as one by one, whatever happens in between."""

import random

import pytest

from sharemgr.cluster.lending import safe
from sharemgr.cluster.lending.card import Asked, Card, Resident, Sample, Use, decide
from sharemgr.cluster.lending.fleet import REFUSED, Fleet
from sharemgr.cluster.state.profiles import Ending, Profiles, Run

MODEL, USABLE_MIB, GPUS = "Tesla-T4", 16_000, 12


class Cluster:
    """GPUs to which things happen by chance."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_s = 0.0
        self.profiles = Profiles()
        self.cards = [Card(USABLE_MIB, Use(f"GPU-{number}", 0.0, USABLE_MIB)) for number in range(GPUS)]
        self.fleet = Fleet(self.cards, self.profiles.on(MODEL), 0.0)

    def run(self) -> Run:
        peak_mib = self.random.choice((500, 2000, 6000))
        return Run(self.now_s, Ending.COMPLETED, USABLE_MIB, peak_mib, self.random.choice((20.0, 60.0)), 10.0)

    def ask(self) -> Asked:
        guarantee_mib = self.random.choice((0, 500, 4000))
        limit_mib = guarantee_mib + self.random.choice((0, 3000, 11_000))
        return Asked(guarantee_mib, limit_mib, self.random.choice("abcd"))

    def happen(self) -> None:
        number = self.random.randrange(GPUS)
        card = self.cards[number]
        match self.random.randrange(5):
            case 0:
                asked = self.ask()
                promised_mib = self.fleet.promises(asked, self.now_s)[number]
                if promised_mib != REFUSED:
                    use = Use(card.use.gpu_id, self.now_s, asked.limit_mib)
                    card.residents.append(Resident(asked, self.now_s, int(promised_mib), use))
            case 1 if card.residents:
                card.residents.remove(self.random.choice(card.residents))
            case 2:
                key = self.random.choice("abcd")
                self.profiles.learn(MODEL, key, self.run(), self.now_s)
                self.fleet.learned(key, self.now_s)
            case _:
                for each, of in enumerate(self.cards):
                    self.sample(of)
                    self.fleet.changed(each, self.now_s)
        self.fleet.changed(number, self.now_s)

    def sample(self, card: Card) -> None:
        card.use.see(Sample(self.now_s, 0.0, card.use.gpu_id), self.now_s)
        for resident in card.residents:
            level_mib = self.random.choice((resident.use.level_mib, resident.use.level_mib, 300.0, 2000.0))
            resident.use.see(Sample(self.now_s, min(level_mib, resident.asked.limit_mib), card.use.gpu_id), self.now_s)


@pytest.mark.parametrize("seed", range(20))
def test_a_fleet_promises_on_each_gpu_what_is_promised_on_it_alone(seed: int) -> None:
    cluster = Cluster(seed)
    promised = refused = 0
    for _ in range(300):
        cluster.now_s += cluster.random.choice((0.0, 1.0, 7.0, 7.0, 30.0))
        cluster.happen()
        asked = cluster.ask()
        found = cluster.fleet.promises(asked, cluster.now_s).tolist()
        alone = [
            decide(safe.POLICY, card, cluster.profiles.on(MODEL), asked, cluster.now_s).promised_mib
            for card in cluster.cards
        ]
        assert found == [REFUSED if mib is None else mib for mib in alone]
        promised += sum(mib is not None for mib in alone)
        refused += sum(mib is None for mib in alone)
    assert promised
    assert refused
