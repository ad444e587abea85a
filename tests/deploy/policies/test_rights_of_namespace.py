"""The rights in the release's namespace: whoever has all of a part's but one is refused by a real API server where the
part's own code needs that one; with all of them nothing is."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from edgeshare.contract.errors import Unavailable
from edgeshare.kube.calls import Calls
from edgeshare.kube.kube import APPLY_PATCH, Kube
from sharemgr.cluster.config import Config
from sharemgr.cluster.issuing.kube_secrets import KubeSecrets
from sharemgr.cluster.issuing.renewal import Name
from sharemgr.cluster.replica import lease as leases
from sharemgr.cluster.replica.announcing import announcement, slices_path
from sharemgr.cluster.replica.leading import TIMES
from sharemgr.cluster.replica.lease import Lease, leases_path
from tests.kit.apiserver.api_server import ApiServer, done
from tests.kit.deploy.objects import Object, Render
from tests.kit.deploy.rights import Accounts, Call, Right, lacks, rules, said

TEAM = "taken-away-here"
NAME = "edgeshare-assigner"
"""Of the Lease and of the EndpointSlice of a release that is called edgeshare."""
OF_SCHEDULER = "edgeshare-scheduler"
SECRET = "edgeshare-assigner-tls"
LEASES, SLICES, SECRETS = "leases.coordination.k8s.io", "endpointslices.discovery.k8s.io", "secrets"
POD = {"POD_NAME": "one", "POD_UID": "one", "POD_IP": "198.51.100.1"}


def by_calls(what: Callable[[Calls], Awaitable[object]]) -> Call:
    async def run(kubeconfig: Path) -> None:
        calls = Calls(kubeconfig)
        async with calls.open():
            await what(calls)

    return lambda kubeconfig: asyncio.run(run(kubeconfig))


def by_kube(call: Callable[[Kube], object]) -> Call:
    return lambda kubeconfig: call(Kube.from_kubeconfig(kubeconfig))


async def takes_lease(calls: Calls) -> None:
    """Has it, or hears in the log why not."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            ended.set_exception(Unavailable(record.getMessage()))

    told = Told()
    leases.logger.addHandler(told)
    lease = Lease(calls, TEAM, NAME, "one", TIMES, lambda _: ended.set_result(None), lambda _: None)
    taking = asyncio.create_task(lease.take())
    try:
        await ended
    finally:
        taking.cancel()
        leases.logger.removeHandler(told)


async def announces(calls: Calls) -> None:
    """As whoever leads does again and again."""
    config = Config.model_validate({"service": {"namespace": TEAM, "name": NAME}, "tls": None})
    what = announcement(config, POD)
    assert what is not None
    await calls.call("PATCH", what.path, what.body, APPLY_PATCH)


def renews(kube: Kube) -> None:
    """A certificate."""
    secrets = KubeSecrets(kube, TEAM, SECRET)
    assert secrets.read(Name.SERVER) is not None
    secrets.write(Name.SERVER, b"certificate", b"key", b"authority")


def listed(path: str, selector: str = "") -> Call:
    return by_kube(lambda kube: kube.objects(path, selector, lambda each: each["metadata"]["name"]))


def watched(path: str, selector: str = "") -> Call:
    """The first change of what is there."""
    return by_kube(lambda kube: next(kube.changes(path, selector, "0")))


ALONE = ("assigner.enabled=true", "assigner.tls.enabled=false", "clusterStatus.enabled=true", "assigner.tls.renew=true")
CALLS: dict[str, dict[Right, Call]] = {
    NAME: {
        (LEASES, "create"): by_calls(takes_lease),
        (LEASES, "get"): by_calls(takes_lease),
        (LEASES, "update"): by_calls(takes_lease),
        (SLICES, "create"): by_calls(announces),
        (SLICES, "patch"): by_calls(announces),
        (SLICES, "list"): listed(slices_path(TEAM)),
        (SLICES, "watch"): watched(slices_path(TEAM)),
    },
    "edgeshare-certificates": {(SECRETS, "get"): by_kube(renews), (SECRETS, "update"): by_kube(renews)},
    # That of the assigner beside a kube-scheduler.
    OF_SCHEDULER: {
        (LEASES, "list"): listed(leases_path(TEAM), f"metadata.name={OF_SCHEDULER}"),
        (LEASES, "watch"): watched(leases_path(TEAM), f"metadata.name={OF_SCHEDULER}"),
    },
}
ALL = [(role, right) for role, calls in CALLS.items() for right in calls]


def lease(name: str) -> Object:
    """One that nobody holds."""
    metadata = {"name": name, "namespace": TEAM}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": {}}


SLICE = {
    **{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "endpoints": []},
    "metadata": {"name": "other", "namespace": TEAM},
}
KEPT = {
    **{"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls"},
    "metadata": {"name": SECRET, "namespace": TEAM},
    "stringData": {"tls.crt": "c", "tls.key": "k", "ca.crt": "a"},
}
THERE: dict[tuple[str, Right], list[Object]] = {
    (NAME, (LEASES, "update")): [lease(NAME)],
    (NAME, (SLICES, "watch")): [SLICE],
    (OF_SCHEDULER, (LEASES, "watch")): [lease(OF_SCHEDULER)],
}
"""What is there already when it is asked for."""


@pytest.fixture(scope="module")
def roles(render: Render) -> dict[str, Object]:
    def found(*values: str) -> dict[str, Object]:
        return {each["metadata"]["name"]: each for each in render(*values) if each["kind"] == "Role"}

    alone, beside = found(*ALONE), found("scheduler.enabled=true", 'scheduler.image="kube-scheduler:v1.30.3"')
    return {NAME: alone[NAME], "edgeshare-certificates": alone["edgeshare-certificates"], OF_SCHEDULER: beside[NAME]}


@pytest.fixture(scope="module")
def accounts(installed: ApiServer, roles: dict[str, Object]) -> Accounts:
    done(installed.kubectl("create", "namespace", TEAM))
    done(installed.create(KEPT))
    return Accounts(installed, TEAM, roles, [*ALL, *((role, None) for role in CALLS)])


@pytest.mark.parametrize(("role", "right"), ALL, ids=lambda each: each if isinstance(each, str) else "-".join(each))
def test_what_needs_a_right_is_refused_without_it_and_never_with_it(
    role: str, right: Right, accounts: Accounts, installed: ApiServer, tmp_path: Path
) -> None:
    done(installed.kubectl("delete", "leases,endpointslices", "--all", f"--namespace={TEAM}"))
    for each in THERE.get((role, right), []):
        done(installed.create(each))
    call = CALLS[role][right]
    assert lacks(right, said(call, accounts.kubeconfig(role, right, tmp_path)))
    assert not lacks(right, said(call, accounts.kubeconfig(role, None, tmp_path)))


def test_each_right_that_is_asked_through_these_is_taken_away(roles: dict[str, Object]) -> None:
    # kube-scheduler's own, in the same pod.
    of_others = {OF_SCHEDULER: {(LEASES, verb) for verb in ("create", "get", "update")}}
    for role, calls in CALLS.items():
        assert {right for right, _ in rules(roles[role])} - of_others.get(role, set()) == calls.keys()
