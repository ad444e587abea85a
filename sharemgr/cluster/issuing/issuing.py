"""Makes the certificates that are missing and renews those that are due, wherever they lie."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Protocol

from sharemgr.cluster.issuing.renewal import Facts, Name, Step, Stored, plan
from sharemgr.cluster.issuing.signing import Pair


class Place(Protocol):
    """Where certificates and keys lie."""

    def read(self, name: Name) -> Stored | None:
        """What is there of one; None: nothing. Raises EdgeshareError where that is not known, or of another shape."""
        ...

    def write(self, name: Name, certificate: bytes, key: bytes, authority: bytes) -> str:
        """Puts it there, whole or not at all, where there is still what was read; returns where. Raises
        EdgeshareError."""
        ...


def issue(place: Place, wanted: Mapping[Name, frozenset[str]], now: datetime, leaf_days: int) -> Iterator[str]:
    """Yields a line on each certificate, when it lies there as it is to be: the authority's, and those that are
    ``wanted``, each for these hosts and those that it was for before. A new leaf holds for ``leaf_days``.

    Raises InvalidRequest before anything was written where something is there that may not be written over, and what
    ``place`` raises: then what was written before that holds, and the same again goes on from there.
    """
    names = (Name.AUTHORITY, *wanted)
    stored = {name: there for name in names if (there := place.read(name)) is not None}
    pairs = {name: Pair.read(found) for name, found in stored.items()}
    before = pairs.get(Name.AUTHORITY)
    found = {name: pair.facts(stored[name].where, before) for name, pair in pairs.items()}
    steps = plan(found, wanted, now, leaf_days)
    # Of a run that came to the authority and no further.
    outdated = {name for name, each in stored.items() if before is not None and not _is_current(each, before)}
    renews = steps[Name.AUTHORITY] is not Step.KEEP
    authority = Pair.authority(now, before) if before is None or renews else before
    for name, step in steps.items():
        made = authority if name is Name.AUTHORITY else pairs.get(name)
        if made is None or (name is not Name.AUTHORITY and step is not Step.KEEP):
            made = authority.issue(name, wanted[name] | _hosts_of(found.get(name)), now, leaf_days)
        where = stored[name].where if name in stored else ""
        if renews or step is not Step.KEEP or name in outdated:
            where = place.write(name, made.certificate_pem, made.key_pem, authority.certificate_pem)
        yield f"{where}: {step}, until {made.ends:%Y-%m-%d}"


def _is_current(stored: Stored, authority: Pair) -> bool:
    return stored.authority is None or authority.is_in(f"{stored.where}: ca.crt", stored.authority)


def _hosts_of(found: Facts | None) -> frozenset[str]:
    return frozenset() if found is None else found.hosts
