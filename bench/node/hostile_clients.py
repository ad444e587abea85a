"""``python -m bench.node.hostile_clients RUNTIME_DIR ATTACK ALLOCATION…``: attacks a node's manager over these
allocations, all at once and again and again, until it is told to end."""

import signal
import sys
import threading
from contextlib import closing
from pathlib import Path

from cuda_hook.wire import MalformedRecord
from tests.kit.manager.acts import ACTS
from tests.kit.manager.attacker import Attacker

AGAIN_S = 0.05
"""After it was sent away, so that it does not only knock."""


def attack(runtime_dir: Path, name: str, allocation_id: str, over: threading.Event) -> None:
    """Until it is over. Who is sent away comes again."""
    while not over.is_set():
        with closing(Attacker(runtime_dir, over, sys.maxsize, allocation_id)) as attacker:
            try:
                ACTS[name](attacker)
            except (OSError, MalformedRecord):
                over.wait(AGAIN_S)


def main() -> None:
    """Returns after SIGTERM."""
    runtime_dir, name, *ids = sys.argv[1:]
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: over.set())
    threads = [threading.Thread(target=attack, args=(Path(runtime_dir), name, each, over)) for each in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
