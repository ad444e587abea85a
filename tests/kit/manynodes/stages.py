"""What KWOK is to do with nodes and pods: what a kubelet would tell of them."""

import json
from typing import Any

READY = '.status.conditions.[] | select( .type == "Ready" ) | .status'
DELETION = ".metadata.deletionTimestamp"

NODE_READY = """
phase: Running
conditions:
{{ range NodeConditions }}
- type: {{ .type | Quote }}
  status: {{ .status | Quote }}
  reason: {{ .reason | Quote }}
  message: {{ .message | Quote }}
  lastHeartbeatTime: {{ Now | Quote }}
  lastTransitionTime: {{ Now | Quote }}
{{ end }}
"""

POD_RUNNING = """
phase: Running
startTime: {{ Now | Quote }}
conditions:
- {type: Initialized, status: "True", lastTransitionTime: {{ Now | Quote }}}
- {type: ContainersReady, status: "True", lastTransitionTime: {{ Now | Quote }}}
- {type: Ready, status: "True", lastTransitionTime: {{ Now | Quote }}}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  restartCount: 0
  state: {running: {startedAt: {{ Now | Quote }}}}
{{ end }}
"""


def stages() -> str:
    """KWOK's configuration, as it reads it from a file."""
    return "\n---\n".join(
        json.dumps(stage)
        for stage in (
            _stage("node-ready", "Node", [(READY, "NotIn", ["True"])], {"statusTemplate": NODE_READY}),
            _stage(
                "pod-running",
                "Pod",
                [(DELETION, "DoesNotExist", []), (".status.phase", "In", ["Pending"])],
                {"statusTemplate": POD_RUNNING},
            ),
            _stage("pod-gone", "Pod", [(DELETION, "Exists", [])], {"delete": True}),
        )
    )


def _stage(name: str, kind: str, when: list[tuple[str, str, list[str]]], then: dict[str, Any]) -> dict[str, Any]:
    selector = [{"key": key, "operator": operator, **({"values": of} if of else {})} for key, operator, of in when]
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": selector},
            "next": then,
        },
    }
