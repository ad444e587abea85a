"""Writes what is derived from the chart, and from the models that read the configurations.

    python deploy/render.py                                  write the chart's schema
    python deploy/render.py --check                          exit 1 where that is out of date
    python deploy/render.py --manifest FILE [--helm HELM]    write the chart with nothing set, for kubectl

`chart/values.schema.json` gets its `$defs` from the models; `helm template` makes the manifest of the chart.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from deviceplugin.config import Config as DevicePlugin
from labeller.config import Config as Labeller
from sharemgr.cluster.config import Config as Assigner
from sharemgr.node.config import Config as ShareManager

DEPLOY = Path(__file__).parent
CHART = DEPLOY / "chart"
SCHEMA = CHART / "values.schema.json"


MODELS: dict[str, type[BaseModel]] = {
    "shareManager": ShareManager,
    "devicePlugin": DevicePlugin,
    "labeller": Labeller,
    "assigner": Assigner,
}
"""Name in the schema's `$defs` → what reads that configuration."""

CHARTS_OWN = {
    *("node_name", "kubelet_dir", "pod_resources_socket", "kubeconfig"),
    *("metrics_address", "wait_for_driver", "root", "namespace", "remote_status", "status"),
    *("address", "lease", "scheduler_lease", "service", "tls"),
}
"""Keys that the chart's mounts and environment decide."""

NOTICE = "# The chart with nothing set, made by deploy/render.py: change the chart.\n"


def schema(current: str) -> str:
    """The schema in `current` with the `$defs` that it should have."""
    content = json.loads(current)
    content["$defs"] = {}
    for name, model in MODELS.items():
        description = model.model_json_schema()
        for key in CHARTS_OWN & description["properties"].keys():
            del description["properties"][key]
        parts = description.pop("$defs", {})
        # What only a part that has gone refers to goes, too.
        while (used := _used(description, parts)) != parts:
            parts = used
        content["$defs"] |= parts
        content["$defs"][name] = description
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _used(description: dict[str, Any], parts: dict[str, Any]) -> dict[str, Any]:
    """The parts that the description, or another part, refers to."""
    return {part: parts[part] for part in parts if f'"#/$defs/{part}"' in json.dumps([description, parts])}


def manifest(helm: str) -> str:
    """The chart as it is with nothing set, its namespace included. Ends this program where helm refuses."""
    # The oldest version that the chart allows; helm would otherwise claim the one that it was built for.
    options = ["--namespace=edgeshare", "--set=createNamespace=true", "--kube-version=1.30.0", "--include-crds"]
    # Which kube-scheduler goes with a cluster, Helm knows at the cluster alone.
    options.append("--set=scheduler.enabled=false")
    # What Helm runs when it uninstalls would be run by whoever applies this.
    options.append("--no-hooks")
    done = subprocess.run(
        [helm, "template", "edgeshare", CHART, *options], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit("the chart cannot be rendered: helm said why above")
    return NOTICE + done.stdout


def main() -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(description="Write, or check, what is derived from the chart.")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--manifest", type=Path, metavar="FILE")
    parser.add_argument("--helm", default="helm")
    arguments = parser.parse_args()
    if arguments.manifest:
        arguments.manifest.parent.mkdir(parents=True, exist_ok=True)
        arguments.manifest.write_text(manifest(arguments.helm))
        return 0
    current = SCHEMA.read_text()
    wanted = schema(current)
    if not arguments.check:
        SCHEMA.write_text(wanted)
    elif current != wanted:
        sys.stderr.write(f"{SCHEMA} is not what the models say: run deploy/render.py\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
