"""The kubelet's side: its calls, with the list that it is sent (``service``, where to begin), and being registered with
it (``registration``). It uses ``admission`` and ``devices``.
"""
