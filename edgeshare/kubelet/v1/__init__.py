"""The kubelet's PodResources API, version v1."""
