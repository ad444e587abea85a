"""What a cluster has once the plain manifest is applied, and what the page on installing says of it."""

from pathlib import Path

import pytest
import yaml
from onenode.api_server import ApiServer

ROOT = Path(__file__).parent.parent.parent
ACCOUNT = "system:serviceaccount:edgeshare:edgeshare"


@pytest.mark.parametrize(
    ("right", "answer"),
    [
        ("list pods", "yes"),
        ("get nodes", "yes"),
        ("patch nodes --subresource=status", "yes"),
        ("create events", "yes"),
        ("patch nodes", "no"),
        ("patch pods", "no"),
        ("get secrets", "no"),
    ],
)
def test_service_account_has_the_rights_that_the_plugin_uses(
    right: str, answer: str, installed: ApiServer
) -> None:
    done = installed.kubectl("auth", "can-i", "--all-namespaces", f"--as={ACCOUNT}", *right.split())
    assert done.stdout.strip() == answer


def test_page_on_installing_names_every_value() -> None:
    page = (ROOT / "docs/install.md").read_text()
    values = yaml.safe_load((ROOT / "deploy/chart/values.yaml").read_text())
    assert [name for name in values if f"`{name}" not in page] == []
