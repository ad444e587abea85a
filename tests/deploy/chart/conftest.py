"""The pod of share manager and device plugin."""

import pytest

from tests.kit.deploy.objects import Object, Render, only


@pytest.fixture
def pod(render: Render) -> Object:
    """The DaemonSet's pod, with nothing set."""
    spec: Object = only(render(), "DaemonSet")["spec"]["template"]["spec"]
    return spec
