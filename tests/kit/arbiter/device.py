"""A device's arbiter with allocations and their clients."""

from sharemgr.node.turns.arbiter import Arbiter
from sharemgr.node.turns.settings import Settings, Share


def device(settings: Settings | None = None, /, **shares: int | Share) -> Arbiter:
    """An arbiter with an allocation a name, each with client 1. A number is a request that may use what is idle."""
    arbiter = Arbiter(settings)
    for name, share in shares.items():
        arbiter.add(name, share if isinstance(share, Share) else Share(share, 100), 0)
        arbiter.join(name, 1, 0)
    return arbiter
