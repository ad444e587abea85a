"""The kubelet's two gRPC services: ``podresources`` asks which containers hold which units; ``v1`` and ``v1beta1`` are
generated from `proto/edgeshare/kubelet`.
"""
