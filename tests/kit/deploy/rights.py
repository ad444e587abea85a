"""Service accounts that have all rights of a role but one, to see what is refused them at a real API server."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import yaml

from edgeshare.contract.errors import Unavailable
from tests.kit.apiserver.api_server import ApiServer, done, until_told
from tests.kit.deploy.objects import Object
from tests.kit.processes.waiting import until

RBAC = "rbac.authorization.k8s.io"

Right = tuple[str, str]
"""A resource with its group, as RBAC's messages have it, and a verb."""

Call = Callable[[Path], object]
"""What a part asks, with a kubeconfig."""

Rule = dict[str, list[str]]


def rules(role: Object) -> list[tuple[Right, Rule]]:
    """Each right of a role, with the rule that gives it alone: of the same names, where it is of some."""
    return [
        (
            (f"{resource}.{group}" if group else resource, verb),
            {
                **{"apiGroups": [group], "resources": [resource], "verbs": [verb]},
                **{key: rule[key] for key in ("resourceNames",) if key in rule},
            },
        )
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


def until_may(server: ApiServer, account: str, right: str, answer: str) -> None:
    """Returns when somebody has a right, as words of `kubectl auth can-i`, or has it not: yes or no. The API server
    learns by a watch of rights that were given, and of those that another test took away again."""
    asked = ("auth", "can-i", f"--as={account}", *right.split())
    until(lambda: server.kubectl(*asked).stdout.strip() == answer, f"{account} may {right}: {answer}")


class Accounts:
    """Of a namespace, which is there: one for each of these roles and a right that it lacks, or none."""

    def __init__(
        self,
        server: ApiServer,
        namespace: str,
        roles: dict[str, Object],
        lacking: Iterable[tuple[str, Right | None]],
    ) -> None:
        self._server = server
        self._namespace = namespace
        self._roles = roles
        items = [each for role, right in lacking for each in self._account(role, right)]
        everything = {"apiVersion": "v1", "kind": "List", "items": items}
        done(server.kubectl("apply", "--filename=-", stdin=json.dumps(everything)))

    def kubeconfig(self, role: str, lacking: Right | None, folder: Path) -> Path:
        """That of one of them, in a folder, once the rest of its rights are in force."""
        name = _called(role, lacking)
        # Some right of a whole resource, by which it is seen.
        (resource, verb), rule = next(
            each for each in rules(self._roles[role]) if "/" not in each[0][0] and each[0] != lacking
        )
        what = "/".join([resource, *rule.get("resourceNames", [])[:1]])
        who = f"--as=system:serviceaccount:{self._namespace}:{name}"
        asked = ("auth", "can-i", verb, what, f"--namespace={self._namespace}", who)
        until_told(lambda: self._server.kubectl(*asked).stdout, "yes")
        token = done(self._server.kubectl("create", "token", name, f"--namespace={self._namespace}")).stdout.strip()
        settings = yaml.safe_load(self._server.kubeconfig.read_text())
        settings["users"][0]["user"] = {"token": token}
        path = folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(settings))
        return path

    def _account(self, role: str, lacking: Right | None) -> list[Object]:
        name, had = _called(role, lacking), rules(self._roles[role])
        left = [rule for right, rule in had if right != lacking]
        assert lacking is None or len(left) < len(had)
        subject = {"kind": "ServiceAccount", "name": name, "namespace": self._namespace}
        binding = {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}, "subjects": [subject]}
        return [
            {
                **{"apiVersion": "v1", "kind": "ServiceAccount"},
                "metadata": {"name": name, "namespace": self._namespace},
            },
            {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": left},
            {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name}, **binding},
        ]


def _called(role: str, lacking: Right | None) -> str:
    return f"{role}-but-{'-'.join(lacking).replace('/', '-')}" if lacking else f"{role}-whole"


def said(call: Call, kubeconfig: Path) -> str:
    """What comes of it, if it is an error. A policy's refusal is one, too, in words of its own."""
    try:
        call(kubeconfig)
    except Unavailable as error:
        return str(error)
    return ""


def lacks(right: Right, told: str) -> bool:
    """Whether that says that somebody has not that right; of a watch the part keeps no more than the status."""
    resource, verb = right
    name, _, group = resource.partition(".")
    if verb == "watch":
        return f"refuses a watch of /api{'s' if group else ''}/" in told and told.endswith(f"/{name}: 403")
    return f'cannot {verb} resource "{name}"' in told
