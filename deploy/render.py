"""Writes what is derived from the chart, and from the models that read the two configurations.

    python deploy/render.py [--helm HELM]           write it
    python deploy/render.py [--helm HELM] --check   exit 1 and name the files that are out of date

`chart/values.schema.json` gets its `$defs` from the models, and then `helm template`
makes `edgeshare.yaml` of the chart.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from pydantic import BaseModel

from deviceplugin.config import Config as DevicePlugin
from labeller.config import Config as Labeller
from sharemgr.cluster.config import Config as Assigner
from sharemgr.node.config import Config as ShareManager

DEPLOY = Path(__file__).parent
CHART = DEPLOY / "chart"
SCHEMA = CHART / "values.schema.json"
MANIFEST = DEPLOY / "edgeshare.yaml"


MODELS: dict[str, type[BaseModel]] = {
    "shareManager": ShareManager,
    "devicePlugin": DevicePlugin,
    "labeller": Labeller,
    "assigner": Assigner,
}
"""Name in the schema's `$defs` → what reads that configuration."""

CHARTS_OWN = {
    *("node_name", "kubelet_dir", "pod_resources_socket", "kubeconfig"),
    *("metrics_address", "wait_for_driver", "root", "namespace"),
    *("address", "lease", "service", "tls"),
}
"""Keys that the chart's mounts and environment decide."""

NOTICE = "# Made from deploy/chart by deploy/render.py: change the chart.\n"


def schema(current: str) -> str:
    """The schema in `current` with the `$defs` that it should have."""
    content = json.loads(current)
    content["$defs"] = {}
    for name, model in MODELS.items():
        description = model.model_json_schema()
        for key in CHARTS_OWN & description["properties"].keys():
            del description["properties"][key]
        parts = description.pop("$defs", {})
        content["$defs"] |= {
            part: parts[part] for part in parts if f'"#/$defs/{part}"' in json.dumps([description, parts])
        }
        content["$defs"][name] = description
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def manifest(helm: str) -> str:
    """The chart as it is with nothing set, its namespace included. Ends this program where helm refuses."""
    # The oldest version that the chart allows; helm would otherwise claim the one that it was built for.
    options = ["--namespace=edgeshare", "--set=createNamespace=true", "--kube-version=1.30.0", "--include-crds"]
    # What Helm runs when it uninstalls would be run by whoever applies this.
    options.append("--no-hooks")
    done = subprocess.run(
        [helm, "template", "edgeshare", CHART, *options], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"{MANIFEST} cannot be rendered: helm said why above")
    return NOTICE + done.stdout


def is_current(path: Path, content: str, check: bool) -> bool:
    """Whether the file holds `content`; where it does not, a check says so, and otherwise it is written."""
    if path.exists() and path.read_text() == content:
        return True
    if check:
        sys.stderr.write(f"{path} is not what the chart and the models say: run deploy/render.py\n")
    else:
        path.write_text(content)
    return False


def main() -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(description="Write, or check, what is derived from the chart.")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--helm", default="helm")
    arguments = parser.parse_args()
    # The schema first: helm renders by it.
    current = is_current(SCHEMA, schema(SCHEMA.read_text()), arguments.check)
    current &= is_current(MANIFEST, manifest(arguments.helm), arguments.check)
    return 0 if current or not arguments.check else 1


if __name__ == "__main__":
    sys.exit(main())
