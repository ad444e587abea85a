"""The manager of one node: grants the time of its devices and caps their memory, and says who has what.

Begin with ``manager``, which puts the parts together, and ``node``, what can be done with them. Below are ``serving``
(the allocations, each with its socket), ``turns`` (who has a device, and until when), ``memory``, ``clients``,
``machine`` and ``sockets``; none of them imports what lies above. ``service`` is what is asked of it over gRPC, and
``remote`` what is, where that is configured, over TCP; ``status``, ``metrics`` and ``recorder`` are what is told.
"""
