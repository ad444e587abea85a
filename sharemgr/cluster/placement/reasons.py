"""Why a node cannot hold a pod, in words: what is free of each of its GPUs. Without a percent sign: kube-scheduler's
events mangle it."""

from edgeshare.contract.units import UNITS_PER_DEVICE
from sharemgr.cluster.state.ledger import Gpu, Ledger, Node
from sharemgr.cluster.state.request import Ask, Request

NO_GPUS = "its device plugin has told of no GPU (there is no AcceleratorNode of that name, or it lists none)"


def unmangled(text: str) -> str:
    """A text with somebody else's words in it."""
    return text.replace("%", " percent")


def wish(request: Request) -> str:
    """What a pod asks for."""
    return " and ".join(map(_ask, request.asks))


def state(node: Node) -> str:
    """What is free of a node's GPUs; the same whoever asks."""
    return ", ".join(_gpu(node, place, gpu) for place, gpu in enumerate(node.inventory.gpus)) or NO_GPUS


def state_for(ledger: Ledger, node: Node, request: Request) -> str:
    """What is free of a node's GPUs for a pod that cannot have just any, and why it cannot have the others."""
    together = ledger.together(request.affinity) if request.affinity else ()
    if together and all(name != node.inventory.node for name, _ in together):
        others = " and ".join(sorted({f"{gpu_id} of node {name}" for name, gpu_id in together}))
        return f"pods of its affinity share GPU {others}"
    told = []
    for place, gpu in enumerate(node.inventory.gpus):
        use = node.use.get(gpu.id)
        exclusions = {} if use is None else use.exclusions
        if request.models and gpu.model not in request.models:
            told.append(f"gpu {place}: is of model {gpu.model}")
        elif together and (node.inventory.node, gpu.id) not in together:
            told.append(f"gpu {place}: is not that of its affinity")
        elif any(exclusion != request.exclusion for exclusion in exclusions):
            names = " and ".join(repr(each) if each else "none" for each in sorted(exclusions))
            told.append(f"gpu {place}: holds pods of exclusion {names}")
        else:
            told.append(_gpu(node, place, gpu))
    return ", ".join(told) or NO_GPUS


def _ask(ask: Ask) -> str:
    memory = f" and {ask.memory_mib:,} MiB" if ask.memory_mib else ""
    if ask.is_whole:
        each = f" with{memory.removeprefix(' and')} each" if memory else ""
        return f"{ask.devices} whole {'GPU' if ask.devices == 1 else 'GPUs'}{each}"
    return f"{ask.units} units{memory} of one GPU"


def _gpu(node: Node, place: int, gpu: Gpu) -> str:
    if not gpu.healthy:
        return f"gpu {place}: not healthy"
    units, mib = (max(0, free) for free in node.free(gpu))
    memory = f", {mib:,} of {gpu.memory_mib:,} MiB free" if gpu.memory_mib else ""
    return f"gpu {place}: {units} of {UNITS_PER_DEVICE} units free{memory}"
