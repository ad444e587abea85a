"""What hostile clients do costs themselves: the others go on by their order, and the manager's memory and descriptors
stay.

Each attack runs beside two programs that saturate the GPU. How exactly their shares stay is judged on the virtual clock
(tests/virtual/test_attacks.py). ``EDGESHARE_ATTACK_RECORDS`` and ``EDGESHARE_ATTACK_CONNECTIONS`` make it as long as
one likes.
"""

from functools import partial

from tests.kit.manager.acts import ACTS
from tests.kit.manager.attacker import PACKETS
from tests.kit.manager.busy import assert_ranked, executed_until
from tests.kit.manager.scene import VICTIMS, a_scene
from tests.kit.manager.testbed import Testbed, share

LEAST_MS = 200
"""Who executes the least has executed so much when the order is judged."""

GROWTH_MIB = 24
"""What the manager may grow by, all attacks together: its own pools settle at some MiB."""

COUNTED: dict[str, set[str]] = {
    "malformed records": set(PACKETS),
    "stale records": {"stale", "flood"},
    "a flood": {"flood"},
    "unread answers": {"unread"},
    "slices that are kept": set(),
    "long drains": set(),
    "lies about usage": {"false-usage"},
    "lies about memory": {"false-memory"},
    "memory that is refused, 200 times a second": set(),
    "connections": {"connections", "clients"},
    "half-closed sockets": set(),
    "noise on the gRPC sockets": set(),
    "descriptors that linger": set(),
}
"""What is counted of each attack: of memory that is refused nothing, since how often one asks who waits for each answer
is up to the machine."""


def test_the_others_go_on_beside_attacks_which_are_counted(testbed: Testbed) -> None:
    with a_scene(testbed) as scene:
        rss_mib, descriptors = scene.rss_mib(), scene.descriptors()
        for name, kinds in COUNTED.items():
            before = scene.offences(testbed.status())
            with scene.under(ACTS[name]) as attacker:
                assert_ranked(executed_until(testbed.machine, list(VICTIMS), LEAST_MS), list(VICTIMS))
                # Where the attack takes up all calls of the status, there is nothing to be counted.
                if kinds:
                    testbed.until(partial(scene.counted, kinds, before))
            print(f"{name}: {attacker.sent} sent, manager {scene.rss_mib():.0f} MiB")
        assert scene.rss_mib() < rss_mib + GROWTH_MIB
        assert scene.manager.process.poll() is None
        # Silent connections are sent away after a while, all others at once.
        testbed.until(lambda _: scene.descriptors() <= descriptors + 8)
        log = scene.manager.log()
        assert len(log.splitlines()) < 200
        assert "Traceback" not in log


def test_one_that_never_releases_is_charged_for_what_it_keeps(testbed: Testbed) -> None:
    with a_scene(testbed):
        keeper = testbed.join("bad")
        keeper.request()
        keeper.granted()
        status = testbed.until(lambda status: share(status, "bad").overlapping)
        assert share(status, "bad").overruns == 1
        assert share(status, "bad").revokes == 1
        held_percent = share(status, "bad").held_percent
        # The others go on as if it were not there, and it is charged all the while.
        assert_ranked(executed_until(testbed.machine, list(VICTIMS), LEAST_MS), list(VICTIMS))
        status = testbed.until(lambda status: share(status, "bad").held_percent > held_percent + 10)
        assert share(status, "bad").grants == 1
