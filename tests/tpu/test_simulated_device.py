"""What a simulated EdgeTPU says with no hook: one process at a time, as the real ones' drivers."""

import subprocess
from pathlib import Path

import pytest

from simgpu.tpu import DRIVER, Tpus
from tests.kit.processes.waiting import PATIENCE_S
from tests.kit.tpu.tpu_lab import APEX, Lab, line, tell

CLAIMINTERFACE, RELEASEINTERFACE = 0x8004550F, 0x80045510
"""linux/usbdevice_fs.h: _IOR('U', 15, unsigned int) and the next."""

TAKES = """
import errno, fcntl, os, struct, sys
path, claim, release = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
usb = path.startswith("/dev/bus/usb/")
fd = -1
for _ in sys.stdin:
    try:
        if usb and fd < 0:
            fd = os.open(path, os.O_RDWR)  # which anybody may
        if usb:
            fcntl.ioctl(fd, claim, struct.pack("I", 0))
        else:
            fd = os.open(path, os.O_RDWR)
        print("has it", flush=True)
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)
        continue
    sys.stdin.readline()
    if usb:
        fcntl.ioctl(fd, release, struct.pack("I", 0))
    else:
        os.close(fd)
    print("gave it back", flush=True)
"""


@pytest.mark.parametrize("bus", ["pcie", "usb"])
def test_a_second_process_is_told_that_it_is_busy_until_the_first_gives_it_back(lab: Lab, bus: str) -> None:
    path = APEX if bus == "pcie" else str(lab.usb_path)
    arguments = (path, str(CLAIMINTERFACE), str(RELEASEINTERFACE))
    first, second = (lab.client(name, TAKES, *arguments, LD_PRELOAD=str(DRIVER)) for name in ("first", "second"))

    def said(process: "subprocess.Popen[str]") -> str:
        tell(process)
        return line(process)

    assert said(first) == "has it"
    assert said(second) == "EBUSY"
    assert said(first) == "gave it back"
    assert said(second) == "has it"
    assert said(first) == "EBUSY"
    # Dead is as good as closed.
    second.kill()
    second.wait(PATIENCE_S)
    assert said(first) == "has it"


def test_who_only_reads_is_let_in_beside(lab: Lab) -> None:
    first = lab.client("first", TAKES, APEX, "0", "0", LD_PRELOAD=str(DRIVER))
    tell(first)
    assert line(first) == "has it"
    reads = f"import os; os.close(os.open({APEX!r}, os.O_RDONLY)); print('read', flush=True)"
    assert line(lab.client("reader", reads, LD_PRELOAD=str(DRIVER))) == "read"


def test_an_inference_that_is_being_written_down_is_none_yet(tmp_path: Path) -> None:
    tpus = Tpus(tmp_path)
    log = tmp_path / "log"
    log.write_text("7 100 200 /dev/apex_0 a\n7 20")
    assert [each.begin_ns for each in tpus.log()] == [100]
    log.write_text("7 100 200 /dev/apex_0 a\n7 200 300 /dev/apex_0 a\n")
    assert [each.begin_ns for each in tpus.log()] == [100, 200]
