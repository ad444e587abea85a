"""A command that is forked at once, begins when it is told what to be, and whose signals and end are
passed on."""

import ctypes
import json
import os
import signal
from contextlib import suppress
from typing import NoReturn

FORWARDED = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2})
"""Signals that are meant for the command when they reach us."""

PR_SET_PDEATHSIG = 1  # linux/prctl.h
SI_KERNEL = 0x80  # asm-generic/siginfo.h: the kernel itself sent it, as a terminal's driver does

NOT_FOUND_STATUS = 127
NOT_EXECUTABLE_STATUS = 126
"""What shells and env(1) answer for a command that cannot be run."""


class Child:
    """A process that waits to become a command, and is killed when this process ends, however that comes
    about.

    Make it while this process has one thread only. From then on the forwarded signals reach ``wait`` and
    nothing else.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None)
        watched = FORWARDED | {signal.SIGCHLD}
        # Blocked before any other thread is there, so that no thread takes a signal from ``wait``.
        self._inherited_mask = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
        self._watched = watched
        parent = os.getpid()
        read_fd, self._write_fd = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._write_fd)
            self._become_command(read_fd, parent)
        os.close(read_fd)

    def begin(self, argv: list[str], environment: dict[str, str]) -> None:
        """Lets the process become this command. Does nothing where a signal has ended it meanwhile."""
        with suppress(BrokenPipeError), os.fdopen(self._write_fd, "w") as pipe:
            pipe.write(json.dumps([argv, environment]))

    def give_up(self) -> None:
        """Ends the process that has not begun; ``wait`` then returns 0."""
        os.close(self._write_fd)

    def wait(self) -> int:
        """Passes signals on until the command ends; returns its exit status, 128 + n where signal n ended
        it."""
        while True:
            received = signal.sigwaitinfo(self._watched)
            if received.si_signo == signal.SIGCHLD:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    code = os.waitstatus_to_exitcode(status)
                    return code if code >= 0 else 128 - code
            elif received.si_code != SI_KERNEL:
                # A terminal signals its whole foreground group: then the command has it already.
                os.kill(self.pid, received.si_signo)

    def _become_command(self, read_fd: int, parent: int) -> NoReturn:
        try:
            self._libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(0)
            # Python took these over in our process; what is ignored on purpose (nohup) stays so.
            for changed in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(changed, signal.SIG_DFL)
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, self._inherited_mask)
            with os.fdopen(read_fd) as pipe:
                text = pipe.read()
            if not text:
                os._exit(0)
            argv, environment = json.loads(text)
            _execute(argv, environment)
        finally:
            # Whatever went wrong, this process must never go on as a second parent.
            os._exit(NOT_EXECUTABLE_STATUS)


def _execute(argv: list[str], environment: dict[str, str]) -> NoReturn:
    try:
        os.execvpe(argv[0], argv, environment)
    except OSError as error:
        os.write(2, f"edgeshare run: {argv[0]}: {error.strerror}\n".encode())
        os._exit(NOT_FOUND_STATUS if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE_STATUS)
