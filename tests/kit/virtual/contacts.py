"""How what runs on the virtual clock touches the world: through functions that the virtual machine answers, or not at
all. A library that goes another way would see two clocks, and no two runs of it were the same."""

import subprocess
from pathlib import Path

from edgeshare.contract.errors import InvalidRequest, Unavailable

NEEDED = frozenset({"clock_gettime", "syscall"})
"""A library that does not ask the C library for these asks the kernel itself, past the virtual machine."""

ANSWERED = NEEDED | {
    *("clock_nanosleep", "close", "dl_iterate_phdr", "fcntl", "getenv", "getpid", "mmap", "munmap", "open"),
    *("pthread_cond_destroy", "pthread_cond_init", "pthread_cond_signal", "pthread_cond_wait", "pthread_create"),
    *("pthread_join", "pthread_mutex_destroy", "pthread_mutex_init", "pthread_mutex_lock", "pthread_mutex_unlock"),
    *("prctl", "pthread_self", "clock_pass_until"),
}
"""By the virtual machine, for the process of the thread that asks."""

SANITIZER = "__tsan_"
"""Of what is built with -fsanitize=thread; all of these are answered."""

HARMLESS = frozenset(
    {
        *("__ctype_b_loc", "__cxa_finalize", "__errno_location", "__gmon_start__", "__isoc99_sscanf"),
        *("__register_atfork", "__tls_get_addr", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable"),
        *("calloc", "free", "malloc", "realloc", "memchr", "memcmp", "memcpy", "memmove", "memset"),
        *("snprintf", "vsnprintf", "strchr", "strcmp", "strcspn", "strlen", "strncmp", "strnlen", "strspn", "strstr"),
        *("strtol", "strtoul", "strtoull"),
        *("access", "fallocate", "fchmod", "fstat", "ftruncate", "lseek", "mkdir", "pread", "pwrite", "read"),
        *("getauxval", "madvise", "mprotect"),
        *("sigaddset", "sigdelset", "sigemptyset", "sigfillset", "sigismember", "sigpending", "sigprocmask"),
    }
)
"""Their answers depend neither on time nor on who else runs: memory, text, files that nobody else writes, signals that
nobody sends."""


def imports(library: Path) -> frozenset[str]:
    """The symbols that a library takes from others, without their versions. Raises Unavailable."""
    command = ["nm", "-D", "--undefined-only", "--format=posix", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(f"nm cannot read {library}: {done.stderr.strip()}")
    return frozenset(line.split()[0].partition("@")[0] for line in done.stdout.splitlines())


def check_contacts(library: Path) -> None:
    """Raises InvalidRequest, with the symbol's name, for a library that cannot run on the virtual clock."""
    found = imports(library)
    for symbol in sorted(NEEDED - found):
        raise InvalidRequest(
            f"{library} does not import {symbol}: built like that it asks the kernel past the virtual clock"
        )
    for symbol in sorted(each for each in found - ANSWERED - HARMLESS if not each.startswith(SANITIZER)):
        raise InvalidRequest(
            f"{library} imports {symbol}, which the virtual clock does not answer: let tests/kit/virtual/vt answer it, "
            "or add it to HARMLESS in tests/kit/virtual/contacts.py with the reason"
        )
