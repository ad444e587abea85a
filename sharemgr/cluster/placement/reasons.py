"""Why a node cannot hold a pod, in words: what is free of each of its devices. Without a percent sign: kube-scheduler's
events mangle it."""

from edgeshare.contract.accelerator_kind import KINDS
from edgeshare.contract.devices import Accelerator
from edgeshare.contract.units import UNITS_PER_DEVICE
from sharemgr.cluster.state.eligibility import Objection, objection, obtainable
from sharemgr.cluster.state.ledger import Ledger
from sharemgr.cluster.state.nodes import Device, Node
from sharemgr.cluster.state.request import Ask, Request


def no_devices(*kinds: Accelerator) -> str:
    """Of a node that has none of these kinds."""
    words = " and no ".join(KINDS[kind].word for kind in kinds)
    return f"its device plugin has told of no {words} (there is no AcceleratorNode of that name, or it lists none)"


def unmangled(text: str) -> str:
    """A text with somebody else's words in it."""
    return text.replace("%", " percent")


def wish(request: Request) -> str:
    """What a pod asks for."""
    return " and ".join(map(_ask, request.asks))


def state(node: Node, kind: Accelerator = Accelerator.GPU) -> str:
    """What is free of a node's devices of that kind; the same whoever asks."""
    return ", ".join(_device(node, place, device) for place, device in enumerate(node.of(kind))) or no_devices(kind)


def state_for(ledger: Ledger, node: Node, request: Request) -> str:
    """What is free of a node's devices of the kind that is asked for, for a pod that cannot have just any, and why it
    cannot have the others."""
    kind = KINDS[request.kind]
    together = ledger.together(request.affinity) if request.affinity else ()
    if together and all(name != node.inventory.node for name, _ in together):
        others = " and ".join(sorted({f"{device_id} of node {name}" for name, device_id in together}))
        return f"pods of its affinity share {kind.word} {others}"
    told = []
    for place, device in enumerate(node.of(kind.accelerator)):
        use = node.use.get(device.id)
        exclusions = {} if use is None else use.exclusions
        called = f"{kind.prefix} {place}"
        match objection(request, node.inventory.node, device, exclusions, together):
            case Objection.MODEL:
                told.append(f"{called}: is of model {device.model}")
            case Objection.AFFINITY:
                told.append(f"{called}: is not that of its affinity")
            case Objection.EXCLUSION:
                names = " and ".join(repr(each) if each else "none" for each in sorted(exclusions))
                told.append(f"{called}: holds pods of exclusion {names}")
            case Objection.HEALTH | None:
                told.append(_device(node, place, device))
    return ", ".join(told) or no_devices(kind.accelerator)


def _ask(ask: Ask) -> str:
    word = KINDS[ask.kind].word
    memory = f" and {ask.memory_mib:,} MiB" if ask.memory_mib else ""
    if ask.is_whole:
        each = f" with{memory.removeprefix(' and')} each" if memory else ""
        return f"{ask.devices} whole {word if ask.devices == 1 else f'{word}s'}{each}"
    return f"{ask.units} units{memory} of one {word}"


def _device(node: Node, place: int, device: Device) -> str:
    called = f"{KINDS[device.kind].prefix} {place}"
    if not device.healthy:
        return f"{called}: not healthy"
    units, mib = obtainable(device, *node.free(device))
    memory = f", {mib:,} of {device.memory_mib:,} MiB free" if device.memory_mib else ""
    return f"{called}: {units} of {UNITS_PER_DEVICE} units free{memory}"
