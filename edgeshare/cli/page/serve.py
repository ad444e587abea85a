"""Looks again and again, and serves the page to browsers of this machine."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from edgeshare.client import ManagerClient
from edgeshare.contract.address import parse_address
from edgeshare.contract.errors import EdgeshareError, InvalidRequest
from edgeshare.http.answering import Pages, Request, Stream
from edgeshare.http.web import CONNECTIONS_MAX, Terms, serving
from edgeshare.shown.feed import CLUSTER_LOOK_S, LOOKS_MISSED, Feed
from edgeshare.shown.node_picture import node_picture, used_of
from edgeshare.shown.page_files import FILES, HEADERS, file_pages
from edgeshare.v1.status_pb2 import NodeStatus

if TYPE_CHECKING:
    from edgeshare.cli.status.service import Service

NODE_LOOK_S = 1.0
"""Between two looks at a node."""

Seen = TypeVar("Seen")


def serve_node(runtime_dir: Path, listen: str) -> None:
    """Serves the page of the node whose manager serves ``runtime_dir``, until it is interrupted. Raises InvalidRequest
    where ``listen`` is no loopback address, Unavailable where nothing can be seen to begin with or nobody listen."""
    address = loopback(listen)
    with ManagerClient(runtime_dir.absolute()) as client:

        def take(feed: Feed, status: NodeStatus) -> None:
            feed.take(partial(node_picture, status), used_of(status))

        asyncio.run(_serve(address, client.status, NODE_LOOK_S, take))


def serve_cluster(kubeconfig: Path, service: "Service | None", listen: str) -> None:
    """Serves the page of the cluster that a kubeconfig leads to, until it is interrupted. Raises as ``serve_node``, and
    as ``asking`` does where there is a service."""
    # Who asks for a node does without the API server's client and what reads its objects.
    from edgeshare.cli.page.cluster_picture import cluster_picture  # noqa: PLC0415
    from edgeshare.cli.status.cluster import Cluster, look  # noqa: PLC0415
    from edgeshare.cli.status.service import asking  # noqa: PLC0415
    from edgeshare.kube.kube import Kube  # noqa: PLC0415
    from edgeshare.shown.service_picture import service_picture, used_on_nodes  # noqa: PLC0415
    from edgeshare.shown.used import Used  # noqa: PLC0415

    def take(feed: Feed, cluster: Cluster) -> None:
        feed.take(partial(cluster_picture, cluster), {})

    def take_used(feed: Feed, used: Used) -> None:
        feed.take(partial(service_picture, used), used_on_nodes(used))

    address = loopback(listen)
    kube = Kube.from_kubeconfig(kubeconfig.expanduser())
    if service is None:
        asyncio.run(_serve(address, partial(look, kube), CLUSTER_LOOK_S, take))
        return
    with asking(service, kube) as ask:
        asyncio.run(_serve(address, ask, CLUSTER_LOOK_S, take_used))


def loopback(listen: str) -> str:
    """The address, if only this machine reaches it. Raises InvalidRequest."""
    try:
        host, _ = parse_address(listen)
        address = ip_address(host)
    except ValueError as error:
        raise InvalidRequest(f"--listen {listen}: expected ADDRESS:PORT, as in 127.0.0.1:9470 or [::1]:9470") from error
    if not address.is_loopback:
        raise InvalidRequest(
            f"--listen {listen}: the page asks nobody who he is, so only this machine may reach it: name a loopback "
            "address, and come from elsewhere through ssh -L"
        )
    return listen


def is_own_host(host: str) -> bool:
    """Whether a Host header names this machine by itself, whatever the port: a browser that was led here under
    somebody's name (DNS rebinding) would let that one's page read what it gets."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    try:
        return name.lower() == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


async def _serve(address: str, look: Callable[[], Seen], every_s: float, take: Callable[[Feed, Seen], None]) -> None:
    feed = Feed(LOOKS_MISSED * every_s, time.monotonic_ns, time.time_ns)
    # Whoever is not there to begin with is an error.
    take(feed, look())
    terms = Terms("--listen", CONNECTIONS_MAX, HEADERS, is_own_host)
    with _looking(look, every_s, partial(take, feed), feed):
        async with serving(address, _pages(feed), terms) as bound:
            click.echo(f"edgeshare top: http://{bound}/ until this is interrupted")
            await asyncio.get_running_loop().create_future()


def _pages(feed: Feed) -> Pages:
    async def events(_: Request) -> Stream:
        return Stream("text/event-stream", feed.follow())

    return {**file_pages(FILES), "/events": events}


@contextmanager
def _looking(look: Callable[[], Seen], every_s: float, take: Callable[[Seen], None], feed: Feed) -> Iterator[None]:
    """Looks in a thread, and tells this event loop. The thread is not waited for, as a look may take long."""
    loop = asyncio.get_running_loop()
    over = threading.Event()

    def tell(call: Callable[..., None], *told: object) -> None:
        if not over.is_set():
            call(*told)

    def run() -> None:
        while not over.wait(every_s):
            if not feed.due():
                continue
            try:
                told: tuple[Callable[..., None], object] = (take, look())
            except EdgeshareError as error:
                told = (feed.lose, str(error))
            # The loop may be closed by now.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(tell, *told)

    threading.Thread(target=run, daemon=True).start()
    try:
        yield
    finally:
        over.set()
