"""Labels of recorded machines, by the whole of the labeller but its outputs."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labeller.collect import Collector
from labeller.config import Config
from labeller.labels import labels_of
from simgpu.create import create
from simgpu.environment import variables
from tests.kit.labeller.machines import MACHINES
from tests.kit.processes import forked

PATIENCE_S = 60

# Kubernetes, apimachinery, pkg/util/validation: IsQualifiedName, IsValidLabelValue, IsDNS1123Subdomain.
NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
VALUE = re.compile(rf"({NAME.pattern})?")
DNS_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
PREFIX = re.compile(rf"{DNS_LABEL}(\.{DNS_LABEL})*")


def labels_found(root: Path, name: str, **settings: object) -> dict[str, str]:
    """Of a recorded machine, whose tree is built at ``root``; ``settings`` are keys of the configuration."""
    machine = MACHINES[name]
    machine.build(root)
    config: dict[str, object] = {"root": str(root), **settings}
    if not machine.gpus:
        # The driver of the machine that the tests run on is no part of this.
        config["sources"] = ("jetson", "devicetree", "coral", "buses")
        return found_by(Config.model_validate(config))
    with simulated(**machine.gpus) as environment:
        return found_with_driver(environment, **config)


def found_by(config: Config) -> dict[str, str]:
    collected = Collector(config).look()
    assert (collected.troubles, collected.unread) == ({}, frozenset())
    return labels_of(collected.facts, config.switches())


def found_with_driver(environment: dict[str, str], **config: object) -> dict[str, str]:
    """The same, by a command that finds the driver which its environment leads to."""
    done = dry_run(environment, **config)
    assert (done.returncode, done.stderr) == (0, "")
    labels = json.loads(done.stdout)["labels"]
    assert isinstance(labels, dict)
    return labels


def dry_run(environment: dict[str, str], **config: object) -> subprocess.CompletedProcess[str]:
    with tempfile.NamedTemporaryFile("w") as file:
        json.dump(config, file)
        file.flush()
        arguments = ["labeller", "--dry-run", "--json", "--config", file.name]
        return forked.run(arguments, PATIENCE_S, environment)


@contextmanager
def simulated(**plan: Any) -> Iterator[dict[str, str]]:
    """A machine with a driver, for as long; the environment in which a program finds it."""
    directory = Path(tempfile.mkdtemp(prefix="labeller-test-", dir="/dev/shm"))
    try:
        create(directory / "machine", **plan)
        yield {**os.environ, **variables(directory / "machine")}
    finally:
        shutil.rmtree(directory)


def invalid(labels: dict[str, str]) -> list[str]:
    """Those that Kubernetes would refuse."""
    return [f"{name}={value}" for name, value in labels.items() if not (_valid_name(name) and _valid_value(value))]


def _valid_name(name: str) -> bool:
    prefix, slash, rest = name.rpartition("/")
    if slash and not (len(prefix) <= 253 and PREFIX.fullmatch(prefix)):
        return False
    return len(rest) <= 63 and NAME.fullmatch(rest) is not None


def _valid_value(value: str) -> bool:
    return len(value) <= 63 and VALUE.fullmatch(value) is not None
