"""The kubelet's device plugin API, version v1beta1."""
