"""What is made, renewed and kept, by what is there and the time; and what is never written over."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from edgeshare.contract.errors import InvalidRequest
from sharemgr.cluster.issuing.renewal import (
    COMMON_NAMES,
    Facts,
    Name,
    Step,
    for_assigner,
    for_status,
    parse_host,
    plan,
    service_hosts,
)

NOW = datetime(2030, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)
DAYS = 360
HOST = "edgeshare-assigner.edgeshare.svc"
ASSIGNERS = (Name.AUTHORITY, Name.SERVER, Name.CLIENT)
KEPT = dict.fromkeys(ASSIGNERS, Step.KEEP)
ALL_MADE = dict.fromkeys(ASSIGNERS, Step.MAKE)


def facts(name: Name, age_days: float, life_days: float) -> Facts:
    """Of one that holds for so long, and began so long ago."""
    begins = NOW - age_days * DAY
    hosts = frozenset({HOST} if name is Name.SERVER else ())
    uses = frozenset({name})
    return Facts(f"f/{name}.crt", begins, begins + life_days * DAY, COMMON_NAMES[name], hosts, uses, signed=True)


def there(**changes: Facts) -> dict[Name, Facts]:
    """All three, young but for what is changed."""
    young = {Name.AUTHORITY: facts(Name.AUTHORITY, 10, 3600)}
    young |= {name: facts(name, 10, DAYS) for name in (Name.SERVER, Name.CLIENT)}
    return young | {Name[name]: changed for name, changed in changes.items()}


def planned(found: Mapping[Name, Facts], *hosts: str) -> dict[Name, Step]:
    return plan(found, for_assigner(frozenset({HOST, *hosts})), NOW, DAYS)


def test_where_nothing_is_all_is_made_and_who_signs_comes_first() -> None:
    assert planned({}) == ALL_MADE
    assert list(planned({})) == [Name.AUTHORITY, Name.SERVER, Name.CLIENT]


@pytest.mark.parametrize("name", [Name.SERVER, Name.CLIENT])
@pytest.mark.parametrize(
    ("age_days", "step"),
    [(0, Step.KEEP), (240, Step.KEEP), (240.001, Step.RENEW), (360, Step.RENEW), (9e3, Step.RENEW)],
)
def test_leaf_is_renewed_when_less_than_a_third_of_its_life_is_left_and_alone(
    name: Name, age_days: float, step: Step
) -> None:
    assert planned(there(**{name.name: facts(name, age_days, 360)})) == {**KEPT, name: step}


def test_a_third_is_one_of_the_life_that_it_has_and_not_of_a_new_ones() -> None:
    assert planned(there(SERVER=facts(Name.SERVER, 2, 4))) == KEPT
    assert planned(there(SERVER=facts(Name.SERVER, 3, 4)))[Name.SERVER] is Step.RENEW
    assert planned(there(SERVER=facts(Name.SERVER, 1200, 1800))) == KEPT


def test_authority_is_kept_while_it_outlasts_a_new_leaf_and_else_renewed_with_it() -> None:
    due = facts(Name.SERVER, 300, DAYS)
    lasts = facts(Name.AUTHORITY, 3600 - DAYS, 3600)
    assert planned(there(SERVER=due, AUTHORITY=lasts))[Name.AUTHORITY] is Step.KEEP
    ends_before = facts(Name.AUTHORITY, 3600 - DAYS + 0.001, 3600)
    assert planned(there(SERVER=due, AUTHORITY=ends_before)) == {
        Name.AUTHORITY: Step.RENEW,
        Name.SERVER: Step.RENEW,
        Name.CLIENT: Step.KEEP,
    }
    # Nothing is signed, so nothing outlasts it.
    assert planned(there(AUTHORITY=ends_before)) == KEPT


def test_a_leaf_that_is_missing_is_made_by_the_authority_that_is_there() -> None:
    found = there()
    del found[Name.CLIENT]
    assert planned(found) == {**KEPT, Name.CLIENT: Step.MAKE}


def test_servers_is_renewed_where_it_is_not_for_a_name_and_kept_where_it_is_for_more() -> None:
    assert planned(there(), "10.0.0.7") == {**KEPT, Name.SERVER: Step.RENEW}
    more = replace(facts(Name.SERVER, 10, DAYS), hosts=frozenset({HOST, "10.0.0.7", "assigner"}))
    assert planned(there(SERVER=more), "10.0.0.7") == KEPT


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        (
            Name.AUTHORITY,
            {"common_name": "kubernetes"},
            "f/ca.crt: is of 'kubernetes', and no authority of edgeshare's: it stays as it is",
        ),
        (Name.AUTHORITY, {"uses": frozenset({Name.SERVER})}, "f/ca.crt: .* no authority of edgeshare's"),
        (Name.AUTHORITY, {"ends": NOW}, "f/ca.crt: the authority's certificate ended on 2030-06-01"),
        (Name.AUTHORITY, {"begins": NOW + DAY}, "begins on 2030-06-02 only: set the clock"),
        (Name.SERVER, {"signed": False}, "f/tls.crt: another authority than f/ca.crt signed it"),
        (Name.CLIENT, {"signed": False}, "f/scheduler.crt: another authority than f/ca.crt signed it"),
        (Name.CLIENT, {"common_name": "system:node:a"}, "is of 'system:node:a', and no certificate of a client"),
        (Name.SERVER, {"uses": frozenset({Name.CLIENT})}, "f/tls.crt: .* no certificate of a server"),
    ],
)
def test_what_may_not_be_written_over_is_said_in_a_line(name: Name, change: dict[str, object], said: str) -> None:
    found = there()
    found[name] = replace(found[name], **change)
    with pytest.raises(InvalidRequest, match=said) as told:
        planned(found)
    assert "\n" not in str(told.value)


def test_a_certificate_whose_authority_is_not_there_is_left() -> None:
    found = there(SERVER=replace(facts(Name.SERVER, 10, DAYS), signed=False))
    del found[Name.AUTHORITY]
    with pytest.raises(InvalidRequest, match=r"f/tls.crt: there is no authority beside it that signed it"):
        planned(found)


def test_server_may_have_any_name_of_its_own() -> None:
    assert planned(there(SERVER=replace(facts(Name.SERVER, 10, DAYS), common_name="old"))) == KEPT


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("a", "a"),
        ("Assigner.EXAMPLE.com", "assigner.example.com"),
        ("10.0.0.7", "10.0.0.7"),
        ("FD00:0::7", "fd00::7"),
        ("1.in-addr.arpa", "1.in-addr.arpa"),
        (".".join(["a" * 63] * 3 + ["b" * 61]), ".".join(["a" * 63] * 3 + ["b" * 61])),
    ],
)
def test_host_has_one_form(text: str, host: str) -> None:
    assert parse_host(text) == host


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "a.", "a..b", "a_b", "-a", "a-", "*.a", "10.0.0.300", "a b", "a\nb", "ä", "a" * 64, "a.1"),
        *("10.0.0.7:1", ".".join(["a" * 63] * 3 + ["b" * 62])),
    ],
)
def test_what_is_no_dns_name_and_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="is no DNS name and no IP address") as told:
        parse_host(text)
    assert "\n" not in str(told.value)


def test_a_service_has_two_names_and_no_others_that_are_none() -> None:
    assert service_hosts("a", "b") == {"a.b.svc", "a.b.svc.cluster.local"}
    for words in (("a.b", "c"), ("a", "../b"), ("", "b"), ("A", "b")):
        with pytest.raises(InvalidRequest, match="is no name of a"):
            service_hosts(*words)


def test_what_the_clusters_status_takes_is_made_where_it_is_wanted_and_leaves_the_assigners_as_they_are() -> None:
    wanted = for_assigner(frozenset({HOST})) | for_status(frozenset({"status"}))
    steps = plan(there(), wanted, NOW, DAYS)
    assert steps == {**KEPT, **dict.fromkeys((Name.STATUS_SERVER, Name.MANAGER, Name.STATUS_CLIENT), Step.MAKE)}
    # Who has them, and asks for the assigner's alone, has them left alone.
    old = {name: facts(name, 300, DAYS) for name in (Name.STATUS_SERVER, Name.MANAGER, Name.STATUS_CLIENT)}
    assert planned({**there(), **old}) == KEPT


def test_what_is_none_of_the_clusters_status_is_left() -> None:
    foreign = replace(facts(Name.STATUS_CLIENT, 0, DAYS), common_name="system:kube-scheduler")
    with pytest.raises(
        InvalidRequest,
        match=r"f/status-client.crt: is of 'system:kube-scheduler', and no certificate of a status client",
    ):
        plan({**there(), Name.STATUS_CLIENT: foreign}, for_status(frozenset({"status"})), NOW, DAYS)
