"""One replica of the assigner from its start to its end: begin with ``replica``. ``leading`` says when it leads, by the
Lease that ``lease`` takes; ``api`` is what it asks of the API server, ``announcing`` says which replica leads, and
``retrying`` has kube-scheduler try pods again. It uses ``state``, ``extender`` and ``server``.
"""
