"""A process whose main thread is the interpreter's: killed at one of its points it goes on as a ghost, and the
interpreter begins anew as another process.

interpreter.py LIBVT NUMBER: 0 for no kill.
"""

import asyncio
import ctypes
import os
import sys

U32, U64 = ctypes.c_uint32, ctypes.c_uint64


class Config(ctypes.Structure):
    _fields_ = [
        ("seed", U64),
        *((name, U32) for name in ("noise", "atomics", "trace", "budget_s")),
        ("delays_most", U64),
        ("costs", U32 * 9),
    ]


async def serve(path: str) -> int:
    """Echoes to itself over a socket of the file system; what was echoed, in bytes."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    server = await asyncio.start_unix_server(echo, path)
    reader, writer = await asyncio.open_unix_connection(path)
    echoed = 0
    for _ in range(3):
        writer.write(b"x" * 10)
        echoed += len(await reader.readexactly(10))
        await asyncio.sleep(0.01)
    writer.close()
    await writer.wait_closed()
    server.close()
    await server.wait_closed()
    return echoed


def live(path: str) -> str:
    try:
        return f"echoed {asyncio.run(serve(path))}"
    except (OSError, RuntimeError, asyncio.IncompleteReadError) as error:
        return type(error).__name__


def main() -> None:
    library, number, folder = sys.argv[1:]
    vt = ctypes.PyDLL(library)
    vt.vt_hash.restype = vt.vt_points_of.restype = vt.vt_now.restype = U64
    vt.vt_init(ctypes.byref(Config(1, 1, 0, 0, 60, 0, (U32 * 9)(40, 800, 2000, 40, 10000, 10000, 2000, 5000, 0))))
    first = vt.vt_process(b"first", None, 5)
    vt.vt_enter(first, b"main")
    if int(number):
        vt.vt_at(first, U64(int(number)), 1, U64(0))
    print("first", live(f"{folder}/first"))
    print("points", vt.vt_points_of(first))
    vt.vt_enter(vt.vt_process(b"second", None, 5), b"main")
    print("second", live(f"{folder}/second"))
    print("ms", vt.vt_now() // 1_000_000)
    print(f"hash {vt.vt_hash():016x}")
    sys.stdout.flush()
    os._exit(0)


main()
