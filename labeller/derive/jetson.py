"""Our labels of a Jetson."""

from edgeshare.contract.labels import label_value
from edgeshare.inventory.boards import module_of
from labeller import names
from labeller.facts import JetsonFacts


def module_label(facts: JetsonFacts) -> str:
    """``Jetson-Orin-Nano``; of one that is not known here, what the devicetree calls it."""
    return label_value((module_of(facts.compatible) or facts.model).removeprefix("NVIDIA "))


def labels_of(facts: JetsonFacts | None) -> dict[str, str]:
    """Module, model, processor and release, those that are known; none on another machine."""
    if facts is None:
        return {}
    soc = next((name for name in facts.compatible if name.startswith("nvidia,tegra")), "")
    told = {
        names.JETSON_MODULE: module_label(facts),
        names.JETSON_MODEL: label_value(facts.model),
        names.JETSON_SOC: label_value(soc.removeprefix("nvidia,")),
        names.JETSON_RELEASE: label_value(facts.release),
    }
    return {name: value for name, value in told.items() if value}
