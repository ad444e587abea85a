"""What a container gets with its units: begin with ``response``, the answer to the kubelet. It uses ``devices`` and
``units``.
"""
