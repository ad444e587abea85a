"""One allocation's folder and socket: where its clients come in."""

import select
import socket
from collections.abc import Collection, Container, Iterator
from pathlib import Path
from time import monotonic_ns

from cuda_hook.gate import BESIDE_OTHERS, BESIDE_TELLS, SiblingsPage
from edgeshare.contract.address import check_socket_path
from edgeshare.contract.errors import Unavailable
from edgeshare.contract.names import HOOK_CONFIG, HOOK_SOCKET
from edgeshare.contract.units import NS_PER_MS
from sharemgr.node.clients.client import HELLO_TIMEOUT_NS, Client
from sharemgr.node.clients.dying import Dying, Listed, bytes_told
from sharemgr.node.clients.folder import make_folder, remove_folder
from sharemgr.node.clients.listener import Listener
from sharemgr.node.clients.offences import Offence
from sharemgr.node.clients.terms import Terms
from sharemgr.node.machine.observer import Observation
from sharemgr.node.sockets.closer import Closer
from sharemgr.node.sockets.loop import Loop
from sharemgr.node.sockets.peers import Peer, process_start
from sharemgr.node.turns.demand import Use

QUIET_LOOKS = 2
"""So many looks long nothing was told by one that is taken to tell of nothing: a driver's samples of what processes do
are up to a second old (NVML API Reference, nvmlDeviceGetProcessUtilization), and pages tell at once."""


class AllocationServer:
    """Listens for one allocation's clients, and opens and closes their gates together."""

    def __init__(
        self,
        *,
        folder: Path,
        terms: Terms,
        max_clients: int,
        client_ids: Iterator[int],
        loop: Loop,
    ) -> None:
        """``client_ids`` gives ids that no other client of the manager has. Raises Unavailable where there is no
        descriptor left."""
        self.socket_path = folder / HOOK_SOCKET
        self.terms = terms
        self.clients: dict[int, Client] = {}
        """All connections, by client id."""
        self.opened_at_ns = monotonic_ns()
        self._folder = folder
        self._there_before = False  # what a manager makes in the folder was, and a container may have it mounted
        self._client_ids = client_ids
        self._loop = loop
        self._listener = Listener(self.socket_path, terms, loop, self.clients, max_clients, self._take_in)
        self._by_fd: dict[int, Client] = {}
        self._said = select.poll()  # of all of them
        try:
            self._siblings = SiblingsPage()
        except OSError as error:
            raise Unavailable(f"allocation {terms.allocation_id} cannot have a page: {error.strerror}") from error
        self._granted = (0, 0)
        self._beside = (0, 0)
        self._use = Use()
        self._used_at_ns = self.opened_at_ns
        self.revokes = 0
        """Grants that were called back."""
        self._hearing = False
        self._dying: dict[int, Dying] = {}

    def open(self) -> None:
        """Makes the folder, what the hook must know without us, and the socket.

        Raises InvalidRequest where the path is too long for a socket, Unavailable where it cannot be made.
        """
        check_socket_path(self.socket_path, "use a shorter --runtime-dir or a shorter id")
        try:
            self._there_before = (self._folder / HOOK_CONFIG).exists()
            make_folder(self._folder, self.terms)
        except OSError as error:
            raise Unavailable(f"{self.socket_path} cannot be made: {error.strerror}") from error
        self._listener.open()

    def close(self) -> None:
        """Ends all connections and listens no more. The folder stays: a container may have it mounted."""
        self._listener.close()
        for client in list(self.clients.values()):
            client.end()
        self._siblings.close()

    def remove_folder(self, undo: bool) -> None:
        """For an allocation that will not come back; ``undo``: one that never came to be leaves what was there."""
        if not (undo and self._there_before):
            remove_folder(self._folder)

    def share_gates(self, tells: bool, cap_ns: int) -> None:
        """What ``open_gates`` says from now on of others that are let in, too."""
        self._beside = ((BESIDE_OTHERS if cap_ns else 0) | (BESIDE_TELLS if tells else 0), cap_ns)

    def used(self, now_ns: int, charges: bool) -> Use:
        """What the pages of all clients say since this was last called. One that has several has nothing queued where
        none of them has: that is for no longer than the least of them says, and not while it used the device.
        ``charges``: it is charged by this, and not by records."""
        use = self._use
        use.gpu_ns = use.undrained_ns = use.running_ns = use.unheard_ns = 0
        use.waits = use.queued = use.lies = False
        elapsed_ns, self._used_at_ns = now_ns - self._used_at_ns, now_ns
        use.idle_ns = elapsed_ns
        joined = 0
        for client in self.clients.values():
            joined += client.add_use(use, now_ns)
            if charges:
                client.counters.hear_all()
        use.pages = joined
        if joined != 1:
            use.idle_ns = min(use.idle_ns, max(0, elapsed_ns - use.gpu_ns)) if joined else 0
        return use

    def unheard_ns(self) -> int:
        """GPU time of its clients that no record has told of yet."""
        return sum(client.unheard_ns() for client in self.clients.values())

    def open_gates(self, number: int, contended: bool, now_ns: int, free_at_ns: int, ends_at_ns: int) -> None:
        """Lets all clients launch under this grant; a grant that goes on keeps the time it was granted at."""
        if self._granted[0] != number:
            self._granted = (number, now_ns)
        granted_at_ns = self._granted[1]
        device = self.terms.device
        for client in self.clients.values():
            if not device.exclusive or device.holds(self.terms.allocation_id, client.client_id):
                client.open_gate(number, contended, granted_at_ns, free_at_ns, ends_at_ns, self._beside)

    def prolong_gates(self, ends_at_ns: int) -> None:
        """Lets all clients queue up to another end of their grant."""
        for client in self.clients.values():
            client.prolong_gate(ends_at_ns)

    def close_gates(self) -> None:
        """Calls the grant back."""
        self.revokes += 1
        for client in self.clients.values():
            if client.pages is not None:
                client.pages.close()

    def foretold(self) -> Iterator[tuple[int, int]]:
        """Of each client that says so: its id, and when it thinks it will have drained."""
        for client in self.clients.values():
            if client.pages is not None:
                ends_at_ns = client.pages.hinted_end_ns()
                if ends_at_ns:
                    yield client.client_id, ends_at_ns

    def promise(self, looks_at_ns: int) -> None:
        """Says that ``hear`` is called then at the latest."""
        for client in self.clients.values():
            if client.pages is not None:
                client.pages.promise(looks_at_ns)

    def hear(self, now_ns: int) -> None:
        """Takes in what its clients gave back without sending it."""
        for client in list(self.clients.values()):
            client.hear(now_ns)

    def stopped(self) -> Collection[int]:
        """The clients whose processes are stopped now."""
        return [client.client_id for client in self.clients.values() if client.peer.stopped()]

    def accuse(self, told_ns: int, used_ns: int, now_ns: int) -> None:
        """Says that its pages told of other GPU time than the driver did of its processes."""
        text = (
            f"its clients' pages told of {told_ns // NS_PER_MS} ms of GPU time, and the driver of "
            f"{used_ns // NS_PER_MS} ms of its processes: it is charged for what it holds, for half a minute or longer"
        )
        self.terms.offences.tell(Offence.FALSE_REPORTS, text, now_ns)

    def sweep(self, now_ns: int) -> None:
        """What has to be looked at now and then: who never said HELLO, who died on a kernel without
        pidfds."""
        for client in list(self.clients.values()):
            if not client.speaks and now_ns > client.connected_at_ns + HELLO_TIMEOUT_NS:
                client.offend(Offence.SILENT, "it never said HELLO")
            elif not client.peer.alive():
                client.end()

    def pids(self) -> list[int]:
        """The processes of its clients, and of those whose memory the driver has not freed yet."""
        return [client.peer.pid for client in self.clients.values()] + [each.pid for each in self._dying.values()]

    def silent_pids(self, active: Container[int]) -> set[int]:
        """The processes of its clients that use a device, as the driver says, and whose pages say that they do not:
        one that has replaced itself by a program without a hook keeps its connection."""
        quiet = {client.peer.pid for client in self.clients.values() if client.counters.quiet_looks >= QUIET_LOOKS}
        return {pid for pid in quiet if pid in active}

    def dying_pid(self, client_id: int) -> int:
        """The process that a client was which the ledger calls dying."""
        return self._dying[client_id].pid

    def reconcile(self, observation: Observation) -> None:
        """Brings in line with what the driver says what is known of its clients."""
        listed = self._listed(observation.processes)
        for client in self.clients.values():
            client.look()
        self._reconcile_clients(listed, again=False)
        self._reconcile_dying(observation.began_at_ns, listed)

    def glance(self, began_at_ns: int, told: Listed) -> None:
        """Brings in line with what the driver says, soon after a look, what answers wait for, and what ended processes
        had."""
        listed = self._listed(told)
        self._reconcile_clients(listed, again=True)
        self._reconcile_dying(began_at_ns, listed)

    @property
    def waits(self) -> bool:
        """Whether a client's answer waits for what the driver says, or one has just ended: the device is not free for
        the next pod before the driver was seen to have freed what that one had."""
        now_ns = monotonic_ns()
        return any(client.memory.waits for client in self.clients.values()) or any(
            each.just_ended(now_ns) for each in self._dying.values()
        )

    def _listed(self, told: Listed) -> Listed:
        return {device_id: told[device_id] for device_id in self.terms.device_ids if device_id in told}

    def _reconcile_clients(self, listed: Listed, again: bool) -> None:
        for client_id, client in self.clients.items():
            if client.joined:
                self.terms.memory.reconcile(client_id, bytes_told(listed, client.peer.pid), again)
        for client in [each for each in self.clients.values() if each.memory.waits]:
            client.memory.answer()

    def _reconcile_dying(self, began_at_ns: int, listed: Listed) -> None:
        memory = self.terms.memory
        dying = memory.dying()
        last = {each.pid: client_id for client_id, each in self._dying.items()}
        for client_id, each in list(self._dying.items()):
            if client_id not in dying:
                del self._dying[client_id]
            elif began_at_ns <= each.ended_at_ns:
                # It may have been too early to see what it had.
                continue
            elif last[each.pid] != client_id or each.freed(self.terms.device_ids, listed):
                memory.driver_freed(client_id)
                del self._dying[client_id]
            else:
                used = bytes_told(listed, each.pid)
                if len(used) == len(self.terms.device_ids) and any(used.values()):
                    memory.driver_says(client_id, used)

    def _take_in(self, connection: socket.socket, peer: Peer, closer: Closer) -> None:
        self.terms.places.take()
        client_id = next(self._client_ids)
        client = Client(
            client_id=client_id,
            connection=connection,
            peer=peer,
            terms=self.terms,
            siblings=self._siblings,
            closer=closer,
            loop=self._loop,
            welcomed=self._welcomed,
            ended=self._forget,
            hear_others=self._hear_others,
        )
        self.clients[client_id] = self._by_fd[client.fd] = client
        self._said.register(client.fd, select.POLLIN)

    def _forget(self, client: Client) -> None:
        client_id = client.client_id
        del self.clients[client_id], self._by_fd[client.fd]
        self.terms.places.give()
        self._said.unregister(client.fd)
        pid = client.peer.pid
        if self.terms.memory.leave(client_id):
            self._dying[client_id] = Dying(pid, process_start(pid), monotonic_ns())
            self.terms.look_soon()
            for other in self.clients.values():
                if other.peer.pid == pid and other.joined:
                    self.terms.memory.succeed(other.client_id, client_id)
                    break

    def _hear_others(self, asking: Client) -> None:
        if self._hearing:
            # One of those that are heard asks, too: its turn comes when all have been.
            return
        self._hearing = True
        # One call of the kernel, whoever asks how often: to try each of them costs as much as some hundred records.
        for fd, _ in self._said.poll(0):
            client = self._by_fd.get(fd)
            if client is not None and client is not asking and client.joined:
                client.catch_up()
        self._hearing = False

    def _welcomed(self, client: Client) -> None:
        """A process that lost its connection may be back with another one, on which it declares again what it has."""
        for dying_id, dying in self._dying.items():
            if dying.pid == client.peer.pid:
                self.terms.memory.succeed(client.client_id, dying_id)
