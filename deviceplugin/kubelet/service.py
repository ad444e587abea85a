"""The plugin as the kubelet calls it: parse, pass on, and put errors into words that reach the pod's
events."""

import asyncio
import logging
from collections.abc import AsyncIterator
from time import monotonic_ns, perf_counter_ns
from typing import NoReturn

from deviceplugin.admission.admission import Admission
from deviceplugin.admission.prestart import PreStart
from deviceplugin.counters import Counters
from deviceplugin.kubelet.unit_list import UnitList
from edgeshare.contract.errors import EdgeshareError
from edgeshare.kubelet.v1beta1 import deviceplugin_pb2 as api
from edgeshare.kubelet.v1beta1.deviceplugin_pb2_grpc import DevicePluginServicer
from edgeshare.log_limit import LogLimit
from edgeshare.rpc import Context, status_code
from edgeshare.waiting import first_of

logger = logging.getLogger(__name__)

OPTIONS = api.DevicePluginOptions(pre_start_required=True, get_preferred_allocation_available=True)
"""Both of the optional calls are wanted."""

REFUSALS_BURST = 30
"""In the log, and then six a minute: a controller makes pods that are refused without end. Their events and the metric
have all of them."""


class Service(DevicePluginServicer):
    """The kubelet's calls over one socket: what it does with an old one must not be taken for the new one's."""

    def __init__(
        self, units: UnitList, admission: Admission, pre_start: PreStart, changed: asyncio.Event, counters: Counters
    ) -> None:
        self._units = units
        self._admission = admission
        self._pre_start = pre_start
        self._changed = changed
        """Set after each Allocate: there is an allocation whose owner is to be learnt."""
        self._counters = counters
        self._refusals = LogLimit(REFUSALS_BURST)
        self._closing = asyncio.Event()
        self._streams = 0
        self.listed = asyncio.Event()
        """Set when the first list was sent."""
        self.unwatched = asyncio.Event()
        """Set when the last stream has ended: the kubelet does not call again by itself."""

    def close(self) -> None:
        """Ends the streams."""
        self._closing.set()

    async def GetDevicePluginOptions(self, request: api.Empty, context: Context) -> api.DevicePluginOptions:
        """As it was told when the plugin was registered."""
        return OPTIONS

    async def ListAndWatch(self, request: api.Empty, context: Context) -> AsyncIterator[api.ListAndWatchResponse]:
        """The whole list at once and after each change, to every stream."""
        self._streams += 1
        try:
            while not self._closing.is_set():
                changes = self._units.next_changes()
                yield self._units.now()
                self.listed.set()
                await first_of(*changes, self._closing)
        finally:
            self._streams -= 1
            if not self._streams:
                self.unwatched.set()

    async def GetPreferredAllocation(
        self, request: api.PreferredAllocationRequest, context: Context
    ) -> api.PreferredAllocationResponse:
        """A hint; an empty one where no choice would be right."""
        response = api.PreferredAllocationResponse()
        for container in request.container_requests:
            try:
                chosen = await self._admission.prefer(
                    container.available_deviceIDs, container.must_include_deviceIDs, container.allocation_size
                )
            except EdgeshareError as error:
                await self._refuse("GetPreferredAllocation", context, error)
            response.container_responses.add(deviceIDs=chosen)
        return response

    async def Allocate(self, request: api.AllocateRequest, context: Context) -> api.AllocateResponse:
        """Hands the units out, or refuses: the pod fails, and its controller makes another."""
        began_ns = perf_counter_ns()
        try:
            response = await self._admission.allocate(
                [container.devices_ids for container in request.container_requests]
            )
        except EdgeshareError as error:
            await self._refuse("Allocate", context, error)
        finally:
            self._counters.allocate.add(perf_counter_ns() - began_ns)
        self._counters.allocations += 1
        self._changed.set()
        return response

    async def PreStartContainer(
        self, request: api.PreStartContainerRequest, context: Context
    ) -> api.PreStartContainerResponse:
        """Lets the container start, or refuses: the pod stays pending, and the kubelet asks again."""
        try:
            await self._pre_start.start(request.devices_ids)
        except EdgeshareError as error:
            await self._refuse("PreStartContainer", context, error)
        return api.PreStartContainerResponse()

    async def _refuse(self, call: str, context: Context, error: EdgeshareError) -> NoReturn:
        self._counters.refusals[call, type(error).__name__] += 1
        more = self._refusals.ending(monotonic_ns())
        if more is not None:
            logger.warning("refused: %s%s", error, more)
        await context.abort(status_code(error), str(error))
        raise AssertionError("abort always raises")
