"""The kubelet's side: its calls (``service``, where to begin), the list that it is sent (``unit_list``), and being
registered with it (``registration``). It uses ``admission``, ``allocations``, ``devices``, ``pods`` and ``units``.
"""
