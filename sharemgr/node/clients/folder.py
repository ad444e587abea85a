"""The folder of one allocation, which its container has mounted: the socket, and what the hook must know without us."""

from contextlib import suppress
from pathlib import Path

from cuda_hook.gate import DEVICES_MAX
from edgeshare.bounded_file import says
from edgeshare.contract.names import HOOK_CONFIG, HOOK_SOCKET
from sharemgr.node.clients.terms import Terms
from sharemgr.node.clients.welcome import uuid_bytes


def make_folder(folder: Path, terms: Terms) -> None:
    """Makes it, and writes the hook's configuration; one that says the same already needs no room on the disk. Raises
    OSError."""
    folder.mkdir(mode=0o755, exist_ok=True)
    welcome = terms.welcome
    uuids = [uuid_bytes(device_id) for device_id in terms.device_ids[:DEVICES_MAX]]
    lines = (
        f"failure-policy={welcome.failure_policy.name.lower()}",
        f"grace-ms={welcome.grace_ms}",
        f"memory-cap-bytes={welcome.memory_cap_bytes}",
        *([f"device-uuids={','.join(uuid.hex() for uuid in uuids)}"] if any(map(any, uuids)) else ()),
        *terms.device_lines,
    )
    content = "".join(f"{line}\n" for line in lines).encode()
    if says(folder / HOOK_CONFIG, content):
        return
    fresh = folder / f"{HOOK_CONFIG}.new"
    # A container that has it mounted may have a lease of one that was left there: who opens that waits.
    fresh.unlink(missing_ok=True)
    with fresh.open("xb") as file:
        file.write(content)
    fresh.replace(folder / HOOK_CONFIG)


def remove_folder(folder: Path) -> None:
    """Removes an allocation's folder and what a manager put into it; one that somebody else uses too is
    left."""
    for name in (HOOK_SOCKET, HOOK_CONFIG, f"{HOOK_CONFIG}.new"):
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


def folders_of_managers(clients_dir: Path) -> list[Path]:
    """The folders in which a manager once opened a socket; others are only prepared for one."""
    return sorted(path.parent for path in clients_dir.glob(f"*/{HOOK_CONFIG}"))
