"""The gRPC interfaces of the kubelet, generated from `proto/edgeshare/kubelet`."""
