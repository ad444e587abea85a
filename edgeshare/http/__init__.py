"""Pages over HTTP: ``web`` serves them, bounded whoever connects, ``answering`` is what they are made of, ``pages`` are
those that each part has (metrics and probes), and ``prometheus`` writes metrics. Begin with ``web``. It uses the
contract and ``edgeshare.log_limit``.
"""
