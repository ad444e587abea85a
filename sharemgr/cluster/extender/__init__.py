"""What kube-scheduler asks of the assigner: ``verbs`` answers it, ``assigner`` decides, pure, and ``binding`` writes
what was decided; ``metrics`` has all metrics of the assigner. It uses ``state``, ``placement`` and ``server``.
"""
