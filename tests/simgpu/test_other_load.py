"""Who keeps the processors busy."""

import subprocess
import sys

from simgpu.stage.other_load import USER_HZ, machine_busy_s, others_percent, own_s

SPIN = "import time\nwhile time.process_time() < 1: pass"


def test_idle_and_waiting_time_is_not_busy() -> None:
    stat = "cpu  100 20 30 9999 8888 4 5 6 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n"
    assert machine_busy_s(stat) == (100 + 20 + 30 + 4 + 5 + 6) / USER_HZ


def test_what_our_own_programs_use_is_ours_also_two_generations_down() -> None:
    before_s = own_s()
    subprocess.run(["sh", "-c", '"$0" -c "$1"; true', sys.executable, SPIN], check=True)
    assert own_s() - before_s >= 1


def test_others_have_what_is_busy_and_not_ours() -> None:
    assert others_percent(busy_s=6, own_s=2, elapsed_s=10, cores=2) == 20.0
    assert others_percent(busy_s=2, own_s=2.01, elapsed_s=10, cores=2) == 0.0
