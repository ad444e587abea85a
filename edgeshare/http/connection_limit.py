"""Which connection has to end where there are too many: an old one, so that nobody who is new is shut out by those that
say nothing."""

from typing import Generic, TypeVar

Connection = TypeVar("Connection")


class ConnectionLimit(Generic[Connection]):
    """At most ``count_max`` connections are held at a time, and at most ``per_address_max`` of one address. The
    connections are whatever hashes, and the caller ends those that it is told of."""

    def __init__(self, count_max: int, per_address_max: int) -> None:
        self._count_max = count_max
        self._per_address_max = per_address_max
        self._address: dict[Connection, str] = {}
        """Of those that are held, the oldest first."""
        self._count: dict[str, int] = {}
        """How many of an address are held, of those that have some."""

    def __len__(self) -> int:
        return len(self._address)

    def admit(self, connection: Connection, address: str) -> Connection | None:
        """Holds one that is new, as the youngest. Returns the one that has to end for it, which is held no more: the
        oldest of its own address, where that has its full number; else, where all have, the oldest of those whose
        addresses have the most, so that many of one address push out each other and not a single one of another."""
        evicted = None
        if self._count.get(address, 0) >= self._per_address_max:
            evicted = next(each for each, of in self._address.items() if of == address)
        elif len(self._address) >= self._count_max:
            # The first of equals, which is the oldest.
            evicted = max(self._address, key=lambda each: self._count[self._address[each]])
        if evicted is not None:
            self.remove(evicted)
        self._address[connection] = address
        self._count[address] = self._count.get(address, 0) + 1
        return evicted

    def renew(self, connection: Connection) -> None:
        """Makes it the youngest, if it is held."""
        address = self._address.pop(connection, None)
        if address is not None:
            self._address[connection] = address

    def remove(self, connection: Connection) -> None:
        """Holds it no more, if it was held."""
        address = self._address.pop(connection, None)
        if address is not None:
            self._count[address] -= 1
            if not self._count[address]:
                del self._count[address]
