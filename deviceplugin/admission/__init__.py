"""A container's way in: which units it had better get (``unit_choice``), whether what it gets is right (``check``), who
it is (``identity``), and the last look before it starts (``prestart``), where allocations that are over are taken back,
too. Begin with ``admission``. It uses ``allocations``, ``devices``, ``pods`` and ``units``.
"""
