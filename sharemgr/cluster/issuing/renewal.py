"""Which certificates are made, which are renewed, and which stay: a function of those that are there, and of the
time."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from ipaddress import ip_address

from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.names import MANAGERS_TLS_NAME, STATUS_CLIENT_NAME
from edgeshare.contract.object_names import LABEL, NAME_MAX


class Name(StrEnum):
    """Whose certificate it is, which is also how its files are called. In the order in which they are written: what is
    signed comes after who signs it."""

    AUTHORITY = "ca"
    SERVER = "tls"
    CLIENT = "scheduler"
    STATUS_SERVER = "status"
    """Of the cluster's status, towards who asks for it."""
    MANAGER = "managers"
    """Of all nodes' share managers, towards the cluster part."""
    STATUS_CLIENT = "status-client"
    """Of the cluster part, towards them."""


STATUS_LEAVES = (Name.STATUS_SERVER, Name.MANAGER, Name.STATUS_CLIENT)
"""Those that the cluster's status takes beside them."""

COMMON_NAMES = {
    Name.AUTHORITY: "edgeshare-assigner-ca",
    Name.SERVER: "edgeshare-assigner",
    Name.CLIENT: "system:kube-scheduler",
    Name.STATUS_SERVER: "edgeshare-status",
    Name.MANAGER: MANAGERS_TLS_NAME,
    Name.STATUS_CLIENT: STATUS_CLIENT_NAME,
}
"""In the subject. The client's is who kube-scheduler is to the API server, too, and what the assigner lets in as
shipped (`tls.clients`); of a server's certificate its hosts alone count."""

AUTHORITY_DAYS = 3650
"""As kubeadm's (its CACertificateValidity)."""

PART = re.compile(LABEL)
"""Of a host's name (RFC 1123, 2.1), as of an object's."""


class Step(StrEnum):
    """What becomes of a certificate."""

    KEEP = "kept"
    MAKE = "made"
    RENEW = "renewed"


@dataclass(frozen=True, slots=True)
class Stored:
    """What lies there for one of them; PEM, as it was found."""

    where: str
    """For who is told of it."""
    certificate: bytes
    key: bytes
    authority: bytes | None = None
    """Who signed it, where that lies beside it."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What of a certificate that is there counts."""

    where: str
    begins: datetime
    ends: datetime
    common_name: str
    hosts: frozenset[str]
    """The DNS names and addresses that it is for, as ``parse_host`` gives them."""
    uses: frozenset[Name]
    """As whose it can be used."""
    signed: bool
    """Whether the authority that lies beside it has signed it."""


def parse_host(text: str) -> str:
    """A DNS name or an IP address, in the one form that it is compared in. Raises InvalidRequest."""
    try:
        return str(ip_address(text))
    except ValueError:
        name = text.lower()
    labels = name.split(".")
    # A name whose last label is a number is a mistyped address (WHATWG URL, "ends in a number").
    if len(name) > NAME_MAX or not all(map(PART.fullmatch, labels)) or labels[-1].isdigit():
        raise InvalidRequest(f"{text!r} is no DNS name and no IP address: name one that kube-scheduler asks by")
    return name


def service_hosts(service: str, namespace: str) -> frozenset[str]:
    """The DNS names of a Service. Raises InvalidRequest where one of the two is no name that Kubernetes can have."""
    for kind, name in (("Service", service), ("namespace", namespace)):
        if not PART.fullmatch(name):
            raise InvalidRequest(f"{name!r} is no name of a {kind}: small letters, digits and '-', at most 63")
    return frozenset({f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local"})


def for_assigner(hosts: frozenset[str]) -> dict[Name, frozenset[str]]:
    """The leaves that the assigner takes, which is reached by these, each with its hosts."""
    return {Name.SERVER: hosts, Name.CLIENT: frozenset()}


def for_status(hosts: frozenset[str]) -> dict[Name, frozenset[str]]:
    """The leaves of the cluster's status, which is reached by these, each with its hosts."""
    return dict(zip(STATUS_LEAVES, (hosts, frozenset({MANAGERS_TLS_NAME}), frozenset[str]()), strict=True))


def plan(
    found: Mapping[Name, Facts], wanted: Mapping[Name, frozenset[str]], now: datetime, leaf_days: int
) -> dict[Name, Step]:
    """What is to be done with each: with the authority, and with the leaves that are ``wanted``, each for the hosts
    that it is reached by. A new leaf holds for so many days.

    A leaf is renewed when less than a third of its life is left, and where it is not for all of its hosts.
    The authority is renewed only together with a leaf that would outlast it. Raises InvalidRequest for what is there
    and may not be written over.
    """
    authority = found.get(Name.AUTHORITY)
    for name, facts in found.items():
        _check_ours(name, facts)
    if authority is not None:
        _check_time(authority, now)
    for leaf in wanted:
        if leaf in found and not found[leaf].signed:
            raise InvalidRequest(f"{found[leaf].where}: {_foreign(authority)}")
    steps = {leaf: _step(found.get(leaf), hosts, now) for leaf, hosts in wanted.items()}
    new_end = now + timedelta(days=leaf_days)
    outlasted = authority is not None and authority.ends < new_end and any(each != Step.KEEP for each in steps.values())
    first = Step.MAKE if authority is None else Step.RENEW if outlasted else Step.KEEP
    return {Name.AUTHORITY: first, **steps}


def _step(leaf: Facts | None, hosts: frozenset[str], now: datetime) -> Step:
    if leaf is None:
        return Step.MAKE
    is_due = leaf.ends - now < (leaf.ends - leaf.begins) / 3
    return Step.RENEW if is_due or not hosts <= leaf.hosts else Step.KEEP


def _check_ours(name: Name, facts: Facts) -> None:
    # Of the cluster's own authority, say, whose folder has a ca.crt and a ca.key, too.
    named = name is Name.SERVER or facts.common_name == COMMON_NAMES[name]
    if not named or name not in facts.uses:
        what = "authority" if name is Name.AUTHORITY else f"certificate of a {name.name.lower().replace('_', ' ')}"
        raise InvalidRequest(
            f"{facts.where}: is of {facts.common_name!r}, and no {what} of edgeshare's: it stays as it is; name a "
            "place where nothing else is"
        )


def _check_time(authority: Facts, now: datetime) -> None:
    if authority.ends <= now:
        raise InvalidRequest(
            f"{authority.where}: the authority's certificate ended on {authority.ends:%Y-%m-%d}, and with it all that "
            "it signed: move the old ones away, and all are made anew"
        )
    if authority.begins > now:
        raise InvalidRequest(
            f"{authority.where}: the authority's certificate begins on {authority.begins:%Y-%m-%d} only: set the clock"
        )


def _foreign(authority: Facts | None) -> str:
    if authority is None:
        return "there is no authority beside it that signed it: bring that back, or move this one away"
    return f"another authority than {authority.where} signed it: it stays as it is; move it away, or name another place"
