"""The clients of this node's allocations: compiled by mypyc, the folder whole, since it runs from one slice to the
next.

Begin with ``server``, one allocation's socket; ``client`` is one process at its other end, and ``device`` gives one
device's arbiter its events and writes what it decides into the clients' gates. It uses ``turns``, ``memory``,
``sockets`` and what ``machine`` observes."""
