"""reActor's labels, with the values that it gives them wherever these tell the device.
(ddps-lab/edge-accelerator-monitor, MonitorContainer/*/hw-monitor-automatic-lableing.sh.)

It knows a Jetson by a few words of the devicetree's ``model``, and takes a card's name to be the first two words that
nvidia-smi says. Ours differ where that is wrong: a Jetson that it takes for another or does not know, a name that it
cuts, and the release of Jetson Linux, of which it gives the revision alone."""

from edgeshare.contract.labels import label_value
from labeller import names
from labeller.derive.boards import module_label
from labeller.facts import CoralFacts, Facts, JetsonFacts, NvmlFacts

CORAL = "Google-Coral-TPU"

AGX = "Jetson-AGX"
XAVIER = "Jetson-Xavier"


def labels_of(facts: Facts, legacy_l4t: bool) -> dict[str, str]:
    """Of the first of these that is there: Jetson, NVIDIA card, Coral. Like theirs, they have one value a node; so none
    is told while one that goes before it may be there, unread."""
    told = _first(facts, legacy_l4t)
    return {name: value for name, text in told.items() if (value := label_value(text))}


def _first(facts: Facts, legacy_l4t: bool) -> dict[str, str]:
    if facts.jetson is not None:
        return _jetson(facts.jetson, legacy_l4t)
    if "jetson" in facts.unread:
        return {}
    if facts.nvml is not None and facts.nvml.gpus:
        return _card(facts.nvml)
    if "nvml" in facts.unread or not facts.corals:
        return {}
    return _coral(facts.corals[0])


def _jetson(facts: JetsonFacts, legacy_l4t: bool) -> dict[str, str]:
    return {
        names.REACTOR_DRIVER: facts.release.partition(".")[2] if legacy_l4t else facts.release,
        names.REACTOR_MODEL: _jetson_name(facts),
        names.REACTOR_RESOURCE: "tegrastats",
    }


def _jetson_name(facts: JetsonFacts) -> str:
    module = module_label(facts)
    if not module.startswith(AGX):
        return module
    # It knows no generations of AGX; early releases of Jetson Linux called the first one Xavier and no more.
    return XAVIER if facts.model.lower() == XAVIER.lower() else AGX


def _card(facts: NvmlFacts) -> dict[str, str]:
    """Of cards of several models, like theirs, the first."""
    first = facts.gpus[0]
    return {
        names.REACTOR_DRIVER: facts.driver.version,
        names.REACTOR_MODEL: _card_name(first.product),
        names.REACTOR_RESOURCE: "nvidia-smi",
        names.REACTOR_VENDOR: first.vendor_id,
        names.REACTOR_PRODUCT: first.device_id,
    }


def _card_name(product: str) -> str:
    """``TeslaT4`` as it has it; of more than two words it loses some."""
    words = product.split()
    return "".join(words) if len(words) <= 2 else product


def _coral(facts: CoralFacts) -> dict[str, str]:
    return {
        names.REACTOR_MODEL: CORAL,
        names.REACTOR_VENDOR: facts.vendor_id,
        names.REACTOR_PRODUCT: facts.device_id,
    }
