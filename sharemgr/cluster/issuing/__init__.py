"""The certificates by which assigner and kube-scheduler know each other: an authority of their own, the assigner's, and
kube-scheduler's. Begin with ``issuing``; ``renewal`` is what is made or renewed when, pure, ``signing`` makes and reads
them, and ``key_folder`` and ``kube_secrets`` are where they lie. It uses nothing else of the assigner.
"""
