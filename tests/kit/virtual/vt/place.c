/* What is said about a run: its hash, its trace, and where each thread is. */
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "machine.h"

uint64_t run_hash = 0xcbf29ce484222325ull;

uint64_t vt_hash(void) { return run_hash; }

static const char *const KINDS[P_KINDS] = {
    [0] = "nothing",           [P_CLOCK] = "clock",   [P_FUTEX_WAIT] = "futex wait", [P_FUTEX_WAKE] = "futex wake",
    [P_SLEEP] = "sleep",       [P_POLL] = "poll",     [P_IO] = "descriptor",         [P_MUTEX] = "mutex",
    [P_CREATE] = "new thread", [P_SPEND] = "program", [P_ATOMIC] = "atomic",         [P_BARRIER] = "membarrier",
    [P_SWITCH] = "switch",     [P_NOTE] = "note",
};

static const char *const WAITS[] = {
    [K_NOTHING] = "a time",
    [K_FUTEX] = "futex",
    [K_MUTEX] = "mutex",
    [K_CONDITION] = "condition",
    [K_SEMAPHORE] = "semaphore",
    [K_ONCE] = "pthread_once",
    [K_THREAD] = "the end of a thread",
    [K_LOCK] = "a lock of a file",
};

void trace_switch(const struct thread *next) {
    (void)fprintf(stderr, "%14.3f us -> %s/%s\n", (double)next->t / 1e3, processes[next->process].name, next->name);
}

void vt_note(const char *what, uint64_t value) {
    for (const char *letter = what; *letter != 0; letter++)
        mix((uint64_t)*letter << 8 | P_NOTE);
    mix(value);
    if (config.trace && self != NULL)
        (void)fprintf(stderr, "%14.3f us %s/%s: %s %llu\n", (double)self->t / 1e3, processes[self->process].name, self->name,
                      what, (unsigned long long)value);
}

/* As addr2line takes it: a library's name, and the offset of the call itself, which ends where it returns to. */
static void print_place(const void *place) {
    const void *call = (const char *)place - 1;
    Dl_info info;
    const char *base;

    if (dladdr(call, &info) == 0 || info.dli_fname == NULL) {
        (void)fprintf(stderr, "%p", place);
        return;
    }
    base = strrchr(info.dli_fname, '/');
    (void)fprintf(stderr, "%s+0x%lx", base == NULL ? info.dli_fname : base + 1,
                  (unsigned long)((const char *)call - (const char *)info.dli_fbase));
    if (info.dli_sname != NULL)
        (void)fprintf(stderr, " (%s)", info.dli_sname);
}

static void print_wait(const struct thread *thread) {
    if (thread->fds != NULL)
        (void)fprintf(stderr, ", waits for descriptor %d%s", thread->fds[0].fd, thread->fd_count > 1 ? " and others" : "");
    else
        (void)fprintf(stderr, ", waits for %s %llx", WAITS[thread->key.kind % K_FILE], (unsigned long long)thread->key.object);
    if (thread->deadline != NEVER)
        (void)fprintf(stderr, " until %.3f ms", (double)thread->deadline / 1e6);
}

static void print_thread(const struct thread *thread) {
    const struct process *process = &processes[thread->process];
    const char *state = thread->ghost              ? "a ghost"
                        : process->dead            ? "killed"
                        : process->stopped         ? "stopped"
                        : thread->state == BLOCKED ? "blocked"
                        : thread == self           ? "running"
                                                   : "ready";

    (void)fprintf(stderr, "vt:   %s/%s: %s at %.3f ms", process->name, thread->name, state, (double)thread->t / 1e6);
    if (thread->state == BLOCKED)
        print_wait(thread);
    if (thread->place != NULL) {
        (void)fprintf(stderr, ", last point (%s) called from ", KINDS[thread->last]);
        print_place(thread->place);
    }
    (void)fputc('\n', stderr);
}

void vt_dump(void) {
    for (int i = 0; i < thread_count; i++)
        if (threads[i].state != ENDED)
            print_thread(&threads[i]);
    (void)fflush(stderr);
}

void die_at(int status, const char *why, const void *place) {
    (void)fprintf(stderr, "vt: %s\n", why);
    if (status != VT_IMPOSSIBLE)
        vt_dump();
    if (place != NULL) {
        (void)fprintf(stderr, "vt:   now in ");
        print_place((const char *)place + 1);
        (void)fputc('\n', stderr);
    }
    (void)fflush(stderr);
    for (;;)
        (void)raw(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

void die(int status, const char *why) { die_at(status, why, NULL); }
