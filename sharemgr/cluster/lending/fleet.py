"""What `safe` would promise a pod on each of many GPUs of one model, kept as arrays: a GPU's room is reckoned when
something happened to it, not when a pod asks.
"""

from collections.abc import Sequence

import numpy as np

from sharemgr.cluster.lending import safe
from sharemgr.cluster.lending.card import NO_SAMPLE_S, Asked, Card, Profiled
from sharemgr.cluster.placement.rows import Floats, Ints

REFUSED = -1


class Fleet:
    """The GPUs, each by its number. Who changes a card, or learns a profile, says so."""

    def __init__(self, cards: Sequence[Card], profiles: Profiled, now_s: float) -> None:
        self._cards = cards
        self._profiles = profiles
        count = len(cards)
        self._room_mib: Floats = np.zeros(count)
        self._until_s: Floats = np.zeros(count)
        self._unguaranteed_mib: Ints = np.zeros(count, np.int64)
        self._told_at_s: Floats = np.zeros(count)
        self._settled: dict[str, dict[int, int]] = {}
        """Key → GPU → what settled pods of that program were seen to hold there."""
        self._keys: list[frozenset[str]] = [frozenset()] * count
        """Of the pods on each GPU."""
        self._on: dict[str, set[int]] = {}
        """Key → the GPUs with such pods."""
        for number in range(count):
            self.changed(number, now_s)

    def changed(self, number: int, now_s: float) -> None:
        """A pod came to that GPU or left it, or a sample of it came, or what its pods may come to hold is due."""
        card = self._cards[number]
        room = safe.room(card, self._profiles, now_s)
        self._room_mib[number], self._until_s[number] = room.mib, room.until_s
        self._unguaranteed_mib[number] = card.usable_mib - card.guaranteed_mib
        self._told_at_s[number] = card.use.told_at_s
        settled = safe.settled_mib(card, self._profiles, now_s)
        keys = frozenset(resident.asked.key for resident in card.residents)
        for key in self._keys[number] | keys:
            self._settled.get(key, {}).pop(number, None)
            if key in settled:
                self._settled.setdefault(key, {})[number] = settled[key]
        for key in self._keys[number] - keys:
            self._on[key].discard(number)
        for key in keys - self._keys[number]:
            self._on.setdefault(key, set()).add(number)
        self._keys[number] = keys

    def learned(self, key: str, now_s: float) -> None:
        """The profile of that program is another."""
        for number in tuple(self._on.get(key, ())):
            self.changed(number, now_s)

    def promises(self, asked: Asked, now_s: float) -> Ints:
        """GPU: what `decide` would promise the pod there, MiB, or REFUSED."""
        for number in np.flatnonzero(self._until_s <= now_s):
            self.changed(int(number), now_s)
        has_guarantee = asked.guarantee_mib <= self._unguaranteed_mib
        if asked.guarantee_mib >= asked.limit_mib:
            return np.where(has_guarantee, asked.guarantee_mib, REFUSED)
        charges = self._charges(asked)
        charges = np.where(charges <= self._room_mib, charges, REFUSED)
        told_s = now_s - self._told_at_s
        is_untold = (told_s < 0) | (told_s > NO_SAMPLE_S)
        return np.where(has_guarantee, np.where(is_untold, asked.guarantee_mib, charges), REFUSED)

    def _charges(self, asked: Asked) -> Ints:
        known_mib = safe.known_mib(asked, self._profiles)
        usual_mib = safe.within(asked, safe.in_flight(asked, known_mib, 0)[0])
        charges = np.full(len(self._cards), usual_mib, np.int64)
        siblings = self._settled.get(asked.key)
        if siblings:
            # Few levels are ever seen of one program, and the same float arithmetic as for a single GPU decides.
            seen_mib = np.fromiter(siblings.values(), np.int64, len(siblings))
            levels, level_of = np.unique(seen_mib, return_inverse=True)
            charge_of = [safe.within(asked, safe.in_flight(asked, known_mib, int(level))[0]) for level in levels]
            charges[np.fromiter(siblings, np.int64, len(siblings))] = np.array(charge_of, np.int64)[level_of]
        return charges
