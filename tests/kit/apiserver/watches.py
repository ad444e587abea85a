"""What a watch of pods tells until it ends, and answers that are no watch, or break one off."""

import asyncio
import json

from edgeshare.kube.calls import Calls
from tests.kit.apiserver.answering_server import BOUND, END, HANG_UP, PODS, SAFETY_S, Json, change, chunks


async def changes(calls: Calls) -> list[Json]:
    """What is told until the watch ends."""
    told: list[Json] = []
    async with asyncio.timeout(SAFETY_S):
        await calls.changes(PODS, BOUND, "7", told.append)
    return told


FIRST = json.dumps(change("b", "8")).encode() + b"\n"
NO_WATCHES = {
    "breaks off in a line": chunks(FIRST, b'{"type": "MOD') + HANG_UP,
    "ends in a line": chunks(FIRST, b'{"type": "MOD') + END,
    "ends with an error": chunks(FIRST, b'{"type": "ERROR", "object": {"code": 500, "message": "away"}}\n'),
    "ends with half an error": chunks(FIRST, b'{"type": "ERROR"}\n'),
    "is nonsense": chunks(FIRST, b"\xff\n"),
    "is a list": chunks(FIRST, b"[1]\n"),
    "is an endless line": chunks(FIRST, b"x" * 8 * 1024 * 1024),
}
