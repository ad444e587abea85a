"""Pods and nodes in the form, and of about the size, in which an API server tells of them."""

import json
import random
import uuid
from collections.abc import Iterable
from enum import IntEnum
from typing import Any

from deviceplugin.cluster.accelerator_node import accelerator_node
from edgeshare.contract.devices import Device
from edgeshare.contract.health import HEALTHY
from edgeshare.contract.names import GPU_ASSIGNMENT, GPU_MEMORY_MIB, GPU_PERCENT

Json = dict[str, Any]

GPUS = 8
GPU_MIB = 24_000
MODEL = "NVIDIA A10"
NAMESPACE = "training"
SEED = 8
SIZES: tuple[tuple[int, int, int], ...] = (
    # percent, MiB (0: the same part as of the units), weight
    (5, 0, 10),
    (10, 0, 15),
    (20, 0, 15),
    (25, 8_000, 10),
    (30, 0, 10),
    (50, 0, 15),
    (70, 12_000, 5),
    (100, 0, 15),
    (200, 0, 4),
    (800, 0, 1),
)
ENV = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NCCL_DEBUG", "WORLD_SIZE", "RANK", "EPOCHS", "BATCH", "PRECISION")
TIME = "2026-03-01T12:00:00Z"


class Stage(IntEnum):
    """How far a pod has come."""

    PENDING = 0
    SCHEDULED = 1
    STARTED = 2
    READY = 3
    ENDING = 4
    GONE = 5


class Pod:
    """One, as it goes through the cluster."""

    def __init__(self, name: str, percent: int, memory_mib: int) -> None:
        self.name = name
        self.uid = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
        self.percent = percent
        self.memory_mib = memory_mib
        self.node = ""
        self.assignment = ""
        self.stage = Stage.PENDING

    def object(self, version: int) -> Json:
        """As the API server has it."""
        metadata = {**self._metadata(version), "managedFields": _managed_fields(self.stage)}
        return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": self._spec(), "status": self._status()}

    def asked(self, version: int) -> Json:
        """As kube-scheduler, which drops what it does not need, sends it to an extender."""
        return {"metadata": self._metadata(version), "spec": self._spec(), "status": self._status()}

    def allocation(self) -> Json:
        """As its node's AcceleratorNode lists it."""
        (devices,) = json.loads(self.assignment).values()
        units = min(self.percent, 100)
        return {
            "id": self.uid[:13],
            "devices": sorted(devices),
            "unitsEach": units,
            "memoryMiB": self.memory_mib or GPU_MIB * units // 100,
            "pod": {"namespace": NAMESPACE, "name": self.name, "uid": self.uid},
            "container": "main",
        }

    def _metadata(self, version: int) -> Json:
        annotations = {"example.com/experiment": "resnet50-imagenet", "prometheus.io/scrape": "true"}
        if self.assignment:
            annotations[GPU_ASSIGNMENT] = self.assignment
        job = self.name.rpartition("-")[0]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": str(uuid.uuid5(uuid.NAMESPACE_DNS, job))}
        return {
            "name": self.name,
            "generateName": f"{job}-",
            "namespace": NAMESPACE,
            "uid": self.uid,
            "resourceVersion": str(version),
            "generation": 1,
            "creationTimestamp": TIME,
            "labels": {
                "app.kubernetes.io/name": "trainer",
                "app.kubernetes.io/part-of": "research",
                "batch.kubernetes.io/controller-uid": owner["uid"],
                "batch.kubernetes.io/job-name": job,
            },
            "annotations": annotations,
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
            **({"deletionTimestamp": TIME, "deletionGracePeriodSeconds": 30} if self.stage >= Stage.ENDING else {}),
        }

    def _spec(self) -> Json:
        limits = {"cpu": "2", "memory": "8Gi", GPU_PERCENT: str(self.percent)}
        if self.memory_mib:
            limits[GPU_MEMORY_MIB] = str(self.memory_mib)
        main = {
            "name": "main",
            "image": "registry.example.com/research/trainer:2026.03.1",
            "command": ["python", "-m", "trainer"],
            "args": ["--config=/etc/trainer/config.yaml", "--epochs=90", "--data=/data/imagenet"],
            "env": [
                {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}},
                *({"name": name, "value": "2"} for name in ENV),
            ],
            "resources": {"limits": limits, "requests": limits},
            "volumeMounts": [
                {"name": "config", "mountPath": "/etc/trainer"},
                {"name": "data", "mountPath": "/data"},
                _mount("kube-api-access-7x2kq"),
            ],
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": "IfNotPresent",
        }
        return {
            "volumes": [
                {"name": "config", "configMap": {"name": "trainer", "defaultMode": 420}},
                {"name": "data", "persistentVolumeClaim": {"claimName": "imagenet", "readOnly": True}},
                _token("kube-api-access-7x2kq"),
            ],
            "containers": [main],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "serviceAccount": "default",
            **({"nodeName": self.node} if self.node else {}),
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{what}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for what in ("not-ready", "unreachable")
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        }

    def _status(self) -> Json:
        if self.stage is Stage.PENDING:
            return {"phase": "Pending", "qosClass": "Guaranteed"}
        names = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
        is_up = str(self.stage is Stage.READY)
        conditions = [
            {"type": name, "status": is_up, "lastProbeTime": None, "lastTransitionTime": TIME} for name in names
        ]
        image = "registry.example.com/research/trainer:2026.03.1"
        container = {
            "name": "main",
            "state": {"running": {"startedAt": TIME}},
            "lastState": {},
            "ready": self.stage is Stage.READY,
            "restartCount": 0,
            "image": image,
            "imageID": f"{image.partition(':')[0]}@sha256:{self.uid.replace('-', '') * 2}",
            "containerID": f"containerd://{self.uid.replace('-', '') * 2}",
            "started": True,
            "volumeMounts": [_mount("kube-api-access-7x2kq")],
        }
        return {
            "phase": "Running" if self.stage is Stage.READY else "Pending",
            "conditions": conditions,
            "hostIP": "10.0.3.17",
            "hostIPs": [{"ip": "10.0.3.17"}],
            "podIP": "10.244.3.9",
            "podIPs": [{"ip": "10.244.3.9"}],
            "startTime": TIME,
            "containerStatuses": [container],
            "qosClass": "Guaranteed",
        }


def sizes(count: int) -> list[tuple[int, int]]:
    """Of so many pods percent and MiB (0: the same part as of the units), the same in each run."""
    drawn = random.Random(SEED).choices(SIZES, [weight for *_, weight in SIZES], k=count)
    return [(percent, memory_mib) for percent, memory_mib, _ in drawn]


def pods(prefix: str, count: int) -> list[Pod]:
    """``count`` pods, the same in each run but for their names."""
    return [Pod(f"{prefix}-{number}", *size) for number, size in enumerate(sizes(count))]


def node(name: str) -> Json:
    """A Node, as far as the assigner looks."""
    allocatable = {"cpu": "128", "memory": "1048576Mi", "pods": "250", GPU_PERCENT: str(100 * GPUS)}
    return {"metadata": {"name": name, "resourceVersion": "1"}, "status": {"allocatable": allocatable}}


def accelerators(name: str, version: int, there: Iterable[Pod]) -> Json:
    """A node's AcceleratorNode, which lists these pods."""
    ids = (uuid.uuid5(uuid.NAMESPACE_DNS, f"{name}.{index}") for index in range(GPUS))
    devices = [(Device(f"GPU-{each}", index, MODEL, GPU_MIB), HEALTHY) for index, each in enumerate(ids)]
    made = accelerator_node(name, str(uuid.uuid5(uuid.NAMESPACE_DNS, name)), devices, ())
    made["metadata"]["resourceVersion"] = str(version)
    made["status"]["allocations"] = [pod.allocation() for pod in there]
    return made


def _mount(name: str) -> Json:
    return {"name": name, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}


def _token(name: str) -> Json:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": 420}}


_SOURCE: Json = {".": {}, "f:configMap": {".": {}, "f:defaultMode": {}, "f:name": {}}, "f:name": {}}


def _managed_fields(stage: Stage) -> list[Json]:
    """Who set what, which of a real pod is a third."""
    main = ("command", "args", "env", "image", "imagePullPolicy", "name", "resources", "terminationMessagePath")
    container: Json = {".": {}, **{f"f:{name}": {} for name in main}}
    container["f:env"] = {".": {}, **{_key(name): {".": {}, "f:name": {}, "f:value": {}} for name in ENV}}
    container["f:resources"] = {
        ".": {},
        **{
            f"f:{part}": {".": {}, "f:cpu": {}, f"f:{GPU_PERCENT}": {}, "f:memory": {}}
            for part in ("limits", "requests")
        },
    }
    mounts = ("/data", "/etc/trainer")
    container["f:volumeMounts"] = {
        ".": {},
        **{f'k:{{"mountPath":"{path}"}}': {".": {}, "f:mountPath": {}, "f:name": {}} for path in mounts},
    }
    labels = ("app.kubernetes.io/name", "app.kubernetes.io/part-of", "batch.kubernetes.io/job-name")
    made: Json = {
        "f:metadata": {
            "f:annotations": {".": {}, "f:example.com/experiment": {}, "f:prometheus.io/scrape": {}},
            "f:generateName": {},
            "f:labels": {".": {}, **{f"f:{name}": {} for name in labels}},
            "f:ownerReferences": {".": {}, 'k:{"uid":"5f1a36a2-6a84-5a5e-8a0e-6f8cbbf0ac3b"}': {}},
        },
        "f:spec": {
            "f:containers": {_key("main"): container},
            **{f"f:{name}": {} for name in ("dnsPolicy", "enableServiceLinks", "restartPolicy", "schedulerName")},
            "f:volumes": {".": {}, **{_key(name): _SOURCE for name in ("config", "data", "scratch", "cache")}},
        },
    }
    found = [_manager("kube-controller-manager", made)]
    if stage > Stage.SCHEDULED:
        condition: Json = {".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}}
        names = ("ContainersReady", "Initialized", "PodReadyToStartContainers", "Ready")
        status: Json = {"f:conditions": {f'k:{{"type":"{name}"}}': condition for name in names}}
        fields = ("containerStatuses", "hostIP", "hostIPs", "phase", "podIP", "startTime")
        status |= {f"f:{name}": {} for name in fields}
        status["f:podIPs"] = {".": {}, 'k:{"ip":"10.244.3.9"}': {".": {}, "f:ip": {}}}
        found.append({**_manager("kubelet", {"f:status": status}), "subresource": "status"})
    return found


def _manager(name: str, fields: Json) -> Json:
    return {
        "manager": name,
        "operation": "Update",
        "apiVersion": "v1",
        "time": TIME,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def _key(name: str) -> str:
    return f'k:{{"name":"{name}"}}'
