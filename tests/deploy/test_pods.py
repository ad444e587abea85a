"""The API server refuses in a pod with a share what would take a container out of it, and nothing else."""

import json
from typing import Any

import pytest

from deviceplugin.inject.response import LIBRARY_DIR, PRELOAD_FILE, VISIBLE_DEVICES
from edgeshare.contract.names import (
    GPU_PERCENT,
    HOOK_DIR_IN_CONTAINER,
    HOOK_DIR_VARIABLE,
    TPU_HOOK_DIR_IN_CONTAINER,
    TPU_PERCENT,
)
from tests.kit.apiserver.api_server import ApiServer, done, refused, until_told
from tests.kit.deploy.objects import Object, Render

MANY = 64
"""Containers of a pod: twice as many as its init containers and others in other tests together."""
VARIABLES = 300
"""Of a container: the links that Kubernetes makes for some forty services of a namespace."""
VOLUMES = [
    {"name": "data", "emptyDir": {}},
    {"name": "block", "persistentVolumeClaim": {"claimName": "none"}},
]


def env(name: str, value: str = "x") -> Object:
    return {"env": [{"name": "FIRST", "value": ""}, {"name": name, "value": value}]}


def mount(path: str) -> Object:
    return {"volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "data", "mountPath": path}]}


def block(path: str) -> Object:
    return {"volumeDevices": [{"name": "block", "devicePath": path}]}


def word(fields: Object) -> str:
    """A name for the case: what matters in its fields."""
    ((key, value),) = fields.items()
    return f"{key} {value if isinstance(value, str) else ' '.join(map(str, value[-1].values()))}"


ADMITTED = [
    env("LD_PRELOAD", "/usr/lib/libjemalloc.so.2"),
    env("LD_LIBRARY_PATH"),
    env("CUDA_VISIBLE_DEVICES", "0"),
    env("NVIDIA_DRIVER_CAPABILITIES", "all"),
    env("EDGESHARE_HOOK_LOG", "stderr"),
    env("MY_EDGESHARE_HOOK_DIR"),
    env(VISIBLE_DEVICES, "void"),
    env(VISIBLE_DEVICES, "none"),
    *map(
        mount, ("/etc/app", "/etc/ld.so.preload.d", "/etc/ld.so.conf", "/usr/local/lib", "/usr/lib64", "/usr/lib/app")
    ),
    *map(
        mount,
        ("/run/user", "/run/edgeshare-of-others", "/var", "/var/lib/edgeshare", "/library", "/runtime", "/tmp/..x"),
    ),
    mount("/var/run/secrets/tokens"),
    block("/dev/block"),
    {"terminationMessagePath": "/tmp/last-words"},
]
"""What a container with a share may have."""

COVERING = (
    *(PRELOAD_FILE, f"{PRELOAD_FILE}/", f"/{PRELOAD_FILE}", "/etc/./ld.so.preload", PRELOAD_FILE.removeprefix("/")),
    *("/etc", "/etc/", "/", "/usr", "/usr/lib", "/lib", "/run", "/var/run"),
    *(LIBRARY_DIR, f"{LIBRARY_DIR}/0123", f"{LIBRARY_DIR}/0123/libedgeshare_cuda.so", "/lib/edgeshare"),
    *(HOOK_DIR_IN_CONTAINER, f"{HOOK_DIR_IN_CONTAINER}/hook.sock", f"/var{HOOK_DIR_IN_CONTAINER}"),
    *(TPU_HOOK_DIR_IN_CONTAINER, f"{TPU_HOOK_DIR_IN_CONTAINER}/hook.conf", f"/var{TPU_HOOK_DIR_IN_CONTAINER}"),
    *("/tmp/../etc/ld.so.preload", ".."),
)
"""Where nothing may be mounted."""

REFUSED = [
    *(
        (env(name), f'container "main" sets {name}, which can take it out of its share: leave it out of env')
        for name in ("LD_AUDIT", HOOK_DIR_VARIABLE, "EDGESHARE_TPU_HOOK_DIR", "EDGESHARE_ANY")
    ),
    *(
        (env(VISIBLE_DEVICES, value), f'container "main" sets {VISIBLE_DEVICES}, but the devices of a pod with a share')
        for value in ("all", "GPU-a", "")
    ),
    *(
        (made(path), f'container "main" has something at {path}, where it can cover the files of its share: /etc/ld.so')
        for made, paths in ((mount, COVERING), (block, (PRELOAD_FILE, "/etc")))
        for path in paths
    ),
    (
        {"terminationMessagePath": PRELOAD_FILE},
        f'container "main" has something at {PRELOAD_FILE}, where it can cover the files of its share',
    ),
]
"""What it may not, and what is said of it."""


def container(name: str, resource: str = "", **fields: Any) -> Object:
    """A container, with a share of a device if a resource is named."""
    return {"name": name, "image": "none", "resources": {"limits": {resource: 50} if resource else {}}, **fields}


def pod(name: str, containers: list[Object], init: tuple[Object, ...] = ()) -> Object:
    spec = {"containers": containers, "initContainers": list(init), "volumes": VOLUMES}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def server(installed: ApiServer) -> ApiServer:
    """The API server, once the policy is in force."""
    probe = json.dumps(pod("probe", [container("main", GPU_PERCENT, **env("LD_AUDIT"))]))
    until_told(lambda: installed.kubectl("create", "--dry-run=server", "-f", "-", stdin=probe).stderr, "sets LD_AUDIT")
    return installed


@pytest.fixture(scope="module")
def verdicts(server: ApiServer) -> tuple[set[str], list[str]]:
    """What is said of all cases, whose pods are named by their list and number."""
    good = [pod(f"good-{n}", [container("main", GPU_PERCENT, **fields)]) for n, fields in enumerate(ADMITTED)]
    bad = [pod(f"bad-{n}", [container("main", GPU_PERCENT, **fields)]) for n, (fields, _) in enumerate(REFUSED)]
    # Without a share all of it is the pod's own affair.
    free = [pod(f"free-{n}", [container("main", **fields)]) for n, (fields, _) in enumerate(REFUSED)]
    return server.admitted([*good, *bad, *free])


@pytest.mark.parametrize("number", range(len(ADMITTED)), ids=list(map(word, ADMITTED)))
def test_what_leaves_a_container_its_share_is_admitted(number: int, verdicts: tuple[set[str], list[str]]) -> None:
    admitted, messages = verdicts
    assert f"good-{number}" in admitted, [each for each in messages if f'"good-{number}"' in each]


@pytest.mark.parametrize("number", range(len(REFUSED)), ids=[word(fields) for fields, _ in REFUSED])
def test_what_takes_a_container_out_of_its_share_is_refused_with_the_reason(
    number: int, verdicts: tuple[set[str], list[str]]
) -> None:
    admitted, messages = verdicts
    assert f"bad-{number}" not in admitted
    (said,) = (each for each in messages if f'"bad-{number}"' in each)
    assert REFUSED[number][1] in said


def test_pods_without_a_share_are_not_looked_at(verdicts: tuple[set[str], list[str]]) -> None:
    admitted, messages = verdicts
    assert {f"free-{n}" for n in range(len(REFUSED))} <= admitted, [each for each in messages if '"free-' in each]


def test_each_kind_of_container_and_of_share_is_looked_at(server: ApiServer) -> None:
    audited = env("LD_AUDIT")
    share = container("main", GPU_PERCENT)
    always = {"restartPolicy": "Always"}
    admitted, messages = server.admitted(
        [
            pod("tpu", [container("main", TPU_PERCENT, **audited)]),
            pod("second", [share, container("second", TPU_PERCENT, **audited)]),
            pod("init", [container("main")], (container("init", GPU_PERCENT, **audited),)),
            pod("sidecar", [container("main")], (container("side", GPU_PERCENT, **audited, **always),)),
        ]
    )
    assert admitted == set()
    for name in ("main", "second", "init", "side"):
        assert sum(f'container "{name}" sets LD_AUDIT' in each for each in messages) == 1


def test_container_beside_one_with_a_share_may_do_all_but_choose_devices(server: ApiServer) -> None:
    share = container("main", GPU_PERCENT)
    free = [env("LD_AUDIT"), mount("/etc"), env(VISIBLE_DEVICES, "void")]
    pods = [pod(f"beside-{n}", [share, container("beside", **fields)]) for n, fields in enumerate(free)]
    assert server.admitted(pods) == ({"beside-0", "beside-1", "beside-2"}, [])
    choosing = container("beside", **env(VISIBLE_DEVICES, "all"))
    admitted, messages = server.admitted(
        [pod("chooses", [share, choosing]), pod("chose", [share], (choosing,)), pod("alone", [choosing])]
    )
    assert admitted == {"alone"}
    assert sum(f'container "beside" sets {VISIBLE_DEVICES}, but the devices' in each for each in messages) == 2


def test_container_that_is_added_later_chooses_no_devices(server: ApiServer) -> None:
    def added(name: str, *more: Object) -> str:
        return json.dumps({"spec": {"ephemeralContainers": [{"name": name, "image": "none"} | each for each in more]}})

    for name, resource in (("debugged", GPU_PERCENT), ("free", "")):
        done(server.create(pod(name, [container("main", resource)])))
    patch = ("patch", "--subresource=ephemeralcontainers", "--patch")
    choosing = added("chooses", env(VISIBLE_DEVICES, "all"))
    said = f'container "chooses" sets {VISIBLE_DEVICES}, but the devices of a pod with a share'
    refused(server.kubectl(*patch, choosing, "pod", "debugged"), said)
    done(server.kubectl(*patch, choosing, "pod", "free"))
    done(server.kubectl(*patch, added("looks", env("PATH", "/")), "pod", "debugged"))


def test_pod_of_many_containers_variables_and_mounts_is_looked_at_in_full(server: ApiServer) -> None:
    """The API server bounds what a policy may cost it, and refuses a pod where it would cost more."""

    def large(name: str, last: str) -> Object:
        variables = [{"name": f"SERVICE_{n}_PORT_8080_TCP_ADDR", "value": "10.0.0.1"} for n in range(VARIABLES)]
        mounts = [{"name": "data", "mountPath": f"/data/of/this/pod/{n}"} for n in range(VARIABLES // 10)]
        fields = {"env": [*variables, {"name": last, "value": ""}], "volumeMounts": mounts}
        # One percent each: no device has room for more of them.
        limits = {"resources": {"limits": {GPU_PERCENT: 1}}}
        return pod(name, [container(f"main-{n}", **fields) | limits for n in range(MANY)])

    admitted, messages = server.admitted([large("good", "LAST"), large("bad", "LD_AUDIT")])
    assert admitted == {"good"}
    assert f'container "main-{MANY - 1}" sets LD_AUDIT' in messages[0]


def test_policy_can_be_left_out_alone(render: Render) -> None:
    def policies(*values: str) -> set[str]:
        return {each["metadata"]["name"] for each in render(*values) if each["kind"].startswith("ValidatingAdmission")}

    nobody = "scheduler.enabled=false"
    assert policies(nobody) - policies(nobody, "policies.pods.enabled=false") == {"edgeshare-pods"}
