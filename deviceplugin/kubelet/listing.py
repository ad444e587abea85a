"""The list that the kubelet is sent: every unit of every device, with the health of its device."""

from collections.abc import Iterable

from edgeshare.contract.devices import Device
from edgeshare.contract.units import UNITS_PER_DEVICE, unit_id
from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as api


def list_units(devices: Iterable[Device]) -> api.ListAndWatchResponse:
    """100 units a device. A device that is on no known NUMA node has no topology: -1 would be taken for a
    node."""
    response = api.ListAndWatchResponse()
    for device in devices:
        health = "Healthy" if device.healthy else "Unhealthy"
        nodes = [api.NUMANode(ID=device.numa_node)] if device.numa_node >= 0 else []
        topology = api.TopologyInfo(nodes=nodes) if nodes else None
        response.devices.extend(
            api.Device(ID=unit_id(device.id, unit), health=health, topology=topology)
            for unit in range(UNITS_PER_DEVICE)
        )
    return response
