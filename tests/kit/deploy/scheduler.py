"""The chart's own scheduler: the names of its objects, the values that have it, and what of the chart it is."""

from tests.kit.deploy.assigner import NAME
from tests.kit.deploy.objects import Object

LEASE = "edgeshare-scheduler"
IMAGE = "registry.example/kube-scheduler:ours"
ENABLED = ("scheduler.enabled=true", f'scheduler.image="{IMAGE}"')


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    """Those of it that belong to the assigner or its scheduler."""
    return [each for each in objects if each["kind"] == kind and each["metadata"]["name"].startswith((NAME, LEASE))]


def configuration(objects: list[Object], name: str) -> str:
    """A file of the pod's configuration."""
    (found,) = of_kind(objects, "ConfigMap")
    return str(found["data"][name])


def containers(objects: list[Object]) -> dict[str, Object]:
    """The pod's, by name."""
    (deployment,) = of_kind(objects, "Deployment")
    return {each["name"]: each for each in deployment["spec"]["template"]["spec"]["containers"]}
