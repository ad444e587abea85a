"""The live allocations, on disk and at the node's share manager: begin with ``store``. ``lifetimes`` says how long each
lasts. It uses ``inject``, ``pods`` and ``units``.
"""
