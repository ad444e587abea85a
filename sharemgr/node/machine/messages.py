"""Allocations as the book has them, and as gRPC and the disk have them."""

from edgeshare.v1 import allocations_pb2 as messages
from sharemgr.node.machine.allocations import Allocation, Owner

LATENCY = messages.SHARE_CLASS_LATENCY
BATCH = messages.SHARE_CLASS_BATCH


def allocation_from(message: messages.Allocation) -> Allocation:
    """Parses an allocation; what its fields may hold is the book's to check."""
    return Allocation(
        id=message.id,
        device_ids=tuple(message.device_ids),
        request_percent=message.request_percent,
        limit_percent=message.limit_percent,
        latency=message.share_class == LATENCY,
        memory_mib=message.memory_mib,
        owner=owner_from(message.owner),
    )


def owner_from(message: messages.Owner) -> Owner:
    """Parses an owner."""
    return Owner(
        namespace=message.namespace,
        pod=message.pod,
        pod_uid=message.pod_uid,
        container=message.container,
        command=message.command,
    )


def message_from(allocation: Allocation) -> messages.Allocation:
    """The inverse of allocation_from."""
    owner = allocation.owner
    return messages.Allocation(
        id=allocation.id,
        device_ids=allocation.device_ids,
        request_percent=allocation.request_percent,
        limit_percent=allocation.limit_percent,
        share_class=LATENCY if allocation.latency else BATCH,
        memory_mib=allocation.memory_mib,
        owner=messages.Owner(
            namespace=owner.namespace,
            pod=owner.pod,
            pod_uid=owner.pod_uid,
            container=owner.container,
            command=owner.command,
        ),
    )
