"""What the manager knows of its machine: its devices as their driver tells them (``observer``, ``contexts``), its
containers, and the allocations (``allocations``, pure) as the disk keeps them (``store``). It uses nothing else of the
manager.
"""
