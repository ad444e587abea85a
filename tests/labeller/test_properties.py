"""Whatever a kernel or a driver says, no label is made that Kubernetes would refuse."""

import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from labeller.collect import Collector
from labeller.config import Config
from labeller.facts import DriverFacts, Facts, GpuFacts, NvmlFacts
from labeller.labels import labels_of
from tests.kit.labeller.labelling import invalid
from tests.kit.labeller.machines import DEVICETREE
from tests.kit.properties.examples import examples

# Strings as a devicetree has them, and what comes near.
LIKELY = st.lists(st.text("ab,+-._ /\u00e9", max_size=70), max_size=6).map(
    lambda names: b"".join(name.encode() + b"\0" for name in names)
)
CONTENT = LIKELY | st.binary(max_size=300)
JETSON = b"nvidia,jetson-nano\0nvidia,tegra210\0"


def labels_with(files: dict[str, bytes]) -> tuple[dict[str, str], dict[str, str]]:
    """Labels, and what went wrong, of a machine with these files."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for path, content in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
        config = Config(root=root, sources=("jetson", "devicetree", "coral", "buses"))
        collected = Collector(config).look()
        return labels_of(collected.facts, config.switches()), collected.troubles


@given(CONTENT, CONTENT)
@example(b"\0\0,\0", b"-,-\0" + b"a" * 200 + b",\0")
@settings(max_examples=examples(300))
def test_every_label_is_valid_for_any_devicetree(root: bytes, gpu: bytes) -> None:
    labels, troubles = labels_with({f"{DEVICETREE}/compatible": root, f"{DEVICETREE}/soc/gpu@0/compatible": gpu})
    assert invalid(labels) == []
    if troubles:
        # Then nothing of it is believed.
        assert not any(name.startswith("beta.devicetree.org/") for name in labels) or "devicetree" not in troubles


@given(LIKELY, LIKELY)
@settings(max_examples=examples(200))
def test_every_string_of_a_good_devicetree_is_counted(root: bytes, gpu: bytes) -> None:
    labels, troubles = labels_with({f"{DEVICETREE}/compatible": root, f"{DEVICETREE}/soc/gpu@0/compatible": gpu})
    assert troubles == {}
    told = [name for name in (root + gpu).decode().split("\0") if any(letter in "ab" for letter in name.split(",")[0])]
    counts = [int(count) for name, count in labels.items() if name.startswith("beta.devicetree.org/")]
    assert sum(counts) >= len(told)


@given(CONTENT, CONTENT, CONTENT)
@settings(max_examples=examples(200))
def test_every_label_is_valid_for_any_jetson(board: bytes, model: bytes, release: bytes) -> None:
    labels, _ = labels_with(
        {
            f"{DEVICETREE}/compatible": board + JETSON,
            f"{DEVICETREE}/model": model,
            "etc/nv_tegra_release": b"# R32 (release), REVISION: 4.3" + release,
        }
    )
    assert invalid(labels) == []


@given(st.text(max_size=120), st.text(max_size=40))
def test_every_label_is_valid_for_any_driver(product: str, version: str) -> None:
    gpu = GpuFacts("GPU-0", 0, product, 15360, 15360, 7, 5)
    facts = replace(
        Facts(), nvml=NvmlFacts(DriverFacts(version, 12, 4), (gpu, replace(gpu, index=1, product="Tesla T4")))
    )
    assert invalid(labels_of(facts, Config().switches())) == []


@given(st.binary(max_size=20), st.binary(max_size=20), st.binary(max_size=20))
def test_every_label_is_valid_for_any_device(vendor: bytes, device: bytes, class_code: bytes) -> None:
    folder = "sys/bus/pci/devices/0000:01:00.0"
    labels, troubles = labels_with(
        {f"{folder}/vendor": vendor, f"{folder}/device": device, f"{folder}/class": class_code}
    )
    assert troubles == {}
    assert invalid(labels) == []
