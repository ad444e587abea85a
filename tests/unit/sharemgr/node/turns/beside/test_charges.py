"""Who is charged for what of the time that went by."""

from edgeshare.contract.units import NS_PER_MS as MS
from edgeshare.contract.units import NS_PER_S as S
from sharemgr.node.turns.beside.charges import cap, settle
from sharemgr.node.turns.gate import Gate, Rule
from sharemgr.node.turns.settings import Settings, Share
from sharemgr.node.turns.share.standing import Standing

SETTINGS = Settings()
SLICE_NS = SETTINGS.slice_ns


class Books:
    """Gates whose demands are read by a test, each look."""

    def __init__(self, *request_percents: int) -> None:
        self.gates = [Gate(Standing(Share(percent, 100), SETTINGS, 0), SETTINGS) for percent in request_percents]
        self.now_ns = self.open_ns = self.busy_ns = 0

    def settle(self, elapsed_ns: int = SLICE_NS) -> None:
        self.now_ns += elapsed_ns
        self.busy_ns, self.open_ns = settle(self.gates, Rule(), SLICE_NS, elapsed_ns, self.open_ns, self.now_ns)

    def runs(self, index: int, running_ns: int) -> None:
        """Something that it launched has been running for so long."""
        self.gates[index].demand.read(0, 0, 0, waits=False, queued=True, running_ns=running_ns, now_ns=self.now_ns)

    def ends(self, index: int, gpu_ns: int) -> None:
        self.gates[index].demand.read(gpu_ns, 0, 0, waits=False, queued=False, now_ns=self.now_ns)

    def waits(self, index: int) -> None:
        self.gates[index].demand.read(0, 0, 0, waits=True, queued=False, now_ns=self.now_ns)


def test_a_long_kernel_is_charged_in_full_when_it_has_ended() -> None:
    books = Books(50, 50)
    for looks in range(1, 4):
        books.runs(0, looks * SLICE_NS)
        books.settle()
        assert (books.busy_ns, books.open_ns) == (0, looks * SLICE_NS)
    books.ends(0, 4 * SLICE_NS)
    books.settle()
    assert (books.busy_ns, books.open_ns) == (4 * SLICE_NS, 0)
    assert books.gates[0].charged_ns == 4 * SLICE_NS


def test_time_is_kept_open_for_no_more_than_may_have_run() -> None:
    books = Books(50, 50)
    books.runs(0, MS)
    books.settle()
    assert books.open_ns == MS
    books.ends(0, 4 * SLICE_NS)
    books.settle()
    assert books.gates[0].charged_ns == SLICE_NS + MS


def test_while_a_kernel_runs_nobody_is_charged_for_idle_time() -> None:
    books = Books(10, 90)
    inside, outside = books.gates
    # It has had more than its guarantee, so that the device's idle time is kept for it where others are kept out.
    books.ends(0, SLICE_NS)
    books.settle()
    inside.open = True
    books.runs(0, SLICE_NS)
    books.waits(1)
    books.settle()
    assert (inside.lag_ns, outside.lag_ns) == (0, 0)
    # It ended then, and nothing has run since: that was kept for it.
    books.ends(0, SLICE_NS)
    books.waits(1)
    books.settle()
    assert inside.charged_ns == 2 * SLICE_NS
    assert inside.lag_ns + outside.lag_ns == 0
    assert inside.lag_ns < 0


def test_costs_that_add_up_to_somewhat_too_much_are_scaled_down() -> None:
    books = Books(90, 10)
    books.ends(0, 4 * MS)
    books.ends(1, 2 * MS)
    books.settle(3 * MS)
    assert [gate.charged_ns for gate in books.gates] == [2 * MS, 1 * MS]


def test_nobody_is_charged_less_than_its_part_because_of_what_others_claim() -> None:
    books = Books(40, 10, 10)
    for index, gpu_ns in enumerate((5 * MS, 3600 * S, 3600 * S)):
        books.ends(index, gpu_ns)
    books.settle(6 * MS)
    assert [gate.charged_ns for gate in books.gates] == [4 * MS, MS, MS]


def lags_ms(most_ms: int, longest_ms: int, *lags_ms: int) -> list[int]:
    """What is left of lags once they are capped."""
    books = Books(*(100 // len(lags_ms) for _ in lags_ms))
    for gate, lag_ms in zip(books.gates, lags_ms, strict=True):
        gate.lag_ns = lag_ms * MS
    cap(books.gates, most_ms * MS, longest_ms * MS)
    assert sum(gate.lag_ns for gate in books.gates) == sum(lags_ms) * MS
    return [gate.lag_ns // MS for gate in books.gates]


def test_one_is_owed_what_each_of_the_others_used_at_once_and_no_more() -> None:
    assert lags_ms(40, 20, 55, 1, -20, -36) == [55, 1, -20, -36]
    assert lags_ms(40, 20, 72, 0, -24, -48) == [60, 0, -20, -40]
    assert lags_ms(40, 20, 55, -55) == [40, -40]
