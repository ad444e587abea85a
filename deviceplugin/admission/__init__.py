"""A container's way in: which units it had better get (``unit_choice``), whether what it gets is right (``check``), who
it is (``identity``), and the last look before it starts (``prestart``). Begin with ``admission``; it uses all but
``kubelet`` and ``cluster``.
"""
