"""A container's way in: which units it had better get (``unit_choice``), whether what it gets is right (``check``), who
it is (``identity``), and the last look before it starts (``prestart``); and which of all are over (``comparison``).
Begin with ``admission``. It uses ``allocations``, ``devices``, ``pods`` and ``units``.
"""
