"""Builds ``cuda_hook._core``: the hook's pure C parts, for Python and the tests (cffi, API mode)."""

from pathlib import Path

from cffi import FFI

HERE = Path(__file__).parent

DECLARATIONS = """
size_t es_record_bytes(unsigned int kind);
enum es_sender { ES_SENDER_NOBODY, ES_SENDER_CLIENT, ES_SENDER_MANAGER };
int es_record_sender(unsigned int kind);
const char *es_record_struct(unsigned int kind);
int es_check_from_client(const void *packet, size_t bytes);
int es_check_from_manager(const void *packet, size_t bytes);
const char *es_malformed_text(int malformed);

uint32_t es_gate_open_word(uint32_t number, int contended);
uint32_t es_gate_number(uint32_t word);
void es_gate_open(struct es_gate_page *page, uint32_t number, int contended, uint64_t now_ns, uint64_t free_at_ns,
                  uint64_t ends_at_ns, uint32_t beside, uint32_t cap_ns);
void es_gate_prolong(struct es_gate_page *page, uint64_t ends_at_ns);
void es_gate_promise(struct es_gate_page *page, uint64_t looks_at_ns);
int es_hint_left(const struct es_hint_page *page, uint32_t known, struct es_release *release, uint64_t *drained_at_ns);
int es_hint_leave(struct es_hint_page *hint, const struct es_gate_page *gate, const struct es_release *release);
void es_used_count(struct es_used *used, uint64_t gpu_ns);
void es_used_idle(struct es_used *used, uint64_t idle_ns);
void es_used_pend(struct es_used *used, uint64_t pending_ns);
void es_used_submit(struct es_used *used, uint64_t now_ns);
void es_used_drain(struct es_used *used, uint64_t now_ns);
void es_used_wait(struct es_used *used, int waits, uint64_t now_ns);
void es_hint_used(const struct es_hint_page *page, struct es_used *into);
void es_siblings_use(struct es_siblings_page *page, uint32_t place, int uses);
uint64_t es_siblings_seen(const struct es_siblings_page *page, uint32_t place);
void es_gate_close(struct es_gate_page *page);
void es_gate_discard(struct es_gate_page *page);
uint32_t es_gate_load(const struct es_gate_page *page);
int es_gate_wait(const struct es_gate_page *page, uint32_t seen, uint64_t timeout_ns);

enum es_malformed { ES_MALFORMED_SHORT, ES_MALFORMED_SENDER, ES_MALFORMED_SIZE, ES_MALFORMED_FIELD, ... };
int es_allowance_take(struct es_hint_page *page, uint32_t device, uint64_t bytes);
void es_allowance_put(struct es_hint_page *page, uint32_t device, uint64_t bytes);
uint64_t es_allowance_take_back(struct es_hint_page *page, uint32_t device, uint64_t most);
uint64_t es_allowance_standing(const struct es_hint_page *page, uint32_t device);
"""

TIMERS = """
#define CLOCK_MONOTONIC ...
#define TFD_NONBLOCK ...
#define TFD_CLOEXEC ...
#define TFD_TIMER_ABSTIME ...
struct timespec { long tv_sec; long tv_nsec; ...; };
struct itimerspec { struct timespec it_interval; struct timespec it_value; ...; };
int timerfd_create(int clock, int flags);
int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old);
"""
"""The kernel's timers, for the manager: Python has them from 3.13 on, and ctypes takes ten times as long for a call."""

SHARED = ("record", "gate_page", "allowance", "siblings", "used")
HEADERS = ("<sys/timerfd.h>", "<time.h>", *(f'"core/shared/{name}.h"' for name in SHARED))

ffibuilder = FFI()
ffibuilder.cdef((HERE / "wire.h").read_text() + DECLARATIONS + TIMERS)
ffibuilder.set_source(
    "cuda_hook._core",
    "".join(f"#include {header}\n" for header in HEADERS),
    sources=sorted(str(path.relative_to(HERE.parent)) for path in HERE.glob("core/**/*.c")),
    include_dirs=["cuda_hook"],
    depends=sorted(
        str(path.relative_to(HERE.parent)) for kind in ("*.h", "*.def", "core/**/*.h") for path in HERE.glob(kind)
    ),
    extra_compile_args=["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"],
)

if __name__ == "__main__":
    ffibuilder.compile(verbose=True, tmpdir=str(HERE.parent))
