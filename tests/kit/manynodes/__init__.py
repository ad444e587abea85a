"""A Kubernetes of thousands of nodes that exist by name alone: the real API server and scheduler, KWOK in place of the
kubelets, a stand-in for the device plugins. Begin with `cluster.py`.
"""
