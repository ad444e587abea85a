"""Every name that users and parts rely on: resources, annotations, labels, paths."""

GPU_PERCENT = "edge/gpu-percent"
GPU_MEMORY_MIB = "edge/gpu-memory-mib"
TPU_PERCENT = "edge/tpu-percent"

GPU_PERCENT_LIMIT = "edge/gpu-percent-limit"
SHARE_CLASS = "edge/share-class"
GPU_MODEL = "edge/gpu-model"
GPU_AFFINITY = "edge/gpu-affinity"
GPU_EXCLUSION = "edge/gpu-exclusion"
GPU_ASSIGNMENT = "edge/gpu-assignment"

GPU_RELEASED = "edge/gpu-released"
"""Annotation of a node: when something was released there that a waiting pod may fit. kube-scheduler tries pods again
when a node changes, and knows nothing of what a GPU's manager lets go."""

CONFIG_LABEL = "edge/config"
"""On a node: which of the named configs of the device plugin is its own."""

CONFIG_DEFAULT = "default"
"""The config of a node without that label."""

RUNTIME_DIR = "/run/edgeshare"
STATE_DIR = "/var/lib/edgeshare"
KUBELET_DIR = "/var/lib/kubelet"

PLUGINS_DIR = "device-plugins"
"""In the kubelet's directory: its device plugins' sockets, and its own for them."""

KUBELET_SOCKET = "kubelet.sock"
"""In a folder of the kubelet's: where it answers."""

POD_RESOURCES_SOCKET = f"pod-resources/{KUBELET_SOCKET}"
"""In the kubelet's directory: its PodResources API."""

STATUS_SOCKET = "status.sock"
"""In the runtime directory: edgeshare.v1.ShareStatus."""

ALLOCATIONS_SOCKET = "allocations.sock"
"""In the runtime directory: edgeshare.v1.Allocations."""

CLIENTS_DIR = "clients"
"""In the runtime directory: one folder an allocation, named by its id, open to the manager's user alone."""

HOOK_SOCKET = "hook.sock"
"""In an allocation's folder: what its clients connect to."""

HOOK_CONFIG = "hook.conf"
"""In an allocation's folder: what the hook must know when the manager is away (``name=value`` lines:
``failure-policy`` open or closed, ``grace-ms``, ``memory-cap-bytes``; for EdgeTPUs ``device``, a node that is
opened, and ``usb-device``, where sysfs tells of one on the USB)."""

HOOK_DIR_IN_CONTAINER = "/run/edgeshare"
"""Where a container finds its allocation's folder."""

HOOK_DIR_VARIABLE = "EDGESHARE_HOOK_DIR"
"""Environment variable that names the allocation's folder for programs outside of containers: where one is at
HOOK_DIR_IN_CONTAINER, the hook does not look at it."""

HOOK_LIBRARY = "libedgeshare_cuda.so"

TPU_HOOK_DIR_IN_CONTAINER = "/run/edgeshare-tpu"
"""Where a container finds the folder of its EdgeTPU allocation, which is another one than its GPU's."""

TPU_HOOK_DIR_VARIABLE = "EDGESHARE_TPU_HOOK_DIR"
"""Names the folder of an EdgeTPU allocation for a program outside of containers."""

MANAGERS_TLS_NAME = "edgeshare-managers"
"""Whom the certificate of the nodes' share managers names (a DNS name): all have the same, whatever their addresses."""

STATUS_CLIENT_NAME = "edgeshare-status"
"""The common name of who asks them for the cluster's status."""

SHARE_API = "share.edge/v1alpha1"
"""The API group and version of our own kinds of object."""

ACCELERATOR_NODES = f"/apis/{SHARE_API}/acceleratornodes"
"""Where the API server has the nodes' AcceleratorNodes."""

ACCELERATOR_NODES_CRD = "acceleratornodes.share.edge"
"""The name of their custom resource definition; in kubectl's calls and in rights it is the resource's own."""
