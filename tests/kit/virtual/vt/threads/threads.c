/* Simulated threads. Each is made by the C library's pthread_create, for its stack and its thread-local data; its own
 * kernel thread then sleeps for ever with every signal blocked, since others run on that stack. A thread that ends
 * sleeps, too: its real end would free memory at a time that is not ours to say. */
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>

#include "machine.h"

struct thread threads[THREADS];
int thread_count;

struct thread *thread_fresh(int process, const char *name, uint64_t t) {
    struct thread *thread = &threads[thread_count];

    if (thread_count == THREADS)
        die(VT_IMPOSSIBLE, "more threads than there is room for");
    *thread = (struct thread){.id = thread_count,
                              .process = process,
                              .state = READY,
                              .t = t,
                              .deadline = NEVER,
                              .tid = FIRST_TID + (uint32_t)thread_count};
    (void)snprintf(thread->name, sizeof(thread->name), "%s", name);
    thread_count++;
    return thread;
}

struct thread *thread_by_tid(long tid) {
    const long index = tid - FIRST_TID;

    return index < 0 || index >= thread_count || threads[index].state == ENDED ? NULL : &threads[index];
}

static struct key end_of(const struct thread *thread) { return (struct key){(uintptr_t)thread, K_THREAD}; }

static _Noreturn void end(struct thread *thread) {
    thread->state = ENDED;
    (void)wake(end_of(thread), ~0u, INT_MAX);
    for (;;)
        pass();
}

static void *begin(void *argument) {
    struct thread *thread = argument;

    self = thread;
    thread->real = pthread_self();
    vt_park(&thread->stack, &thread->parked);
    if (thread->plain != NULL)
        thread->plain(thread->argument);
    else
        thread->value = thread->run(thread->argument);
    end(thread);
}

/* Makes it and waits until it has parked, so that it allocates nothing more at a time of its own. */
static int launch(struct thread *thread, const pthread_attr_t *attributes) {
    const uint64_t all = ~0ull;
    uint64_t before;
    int error;

    (void)raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, sizeof(all), 0, 0);
    error = REAL(pthread_create)(&thread->real, attributes, begin, thread);
    (void)raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof(before), 0, 0);
    while (error == 0 && __atomic_load_n(&thread->parked, __ATOMIC_ACQUIRE) == 0)
        (void)raw(SYS_futex, (long)&thread->parked, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
    if (error != 0)
        thread->state = ENDED;
    due_changed(thread);
    return error;
}

void vt_enter(int process, const char *name) {
    static pthread_t entered;
    struct thread *before = self;
    struct thread *thread;

    if (before == NULL ? entered != 0 : !before->entered)
        die(VT_IMPOSSIBLE, "vt_enter from a second thread: simulated threads run on the first one's alone");
    thread = thread_fresh(process, name, before == NULL ? START_NS : before->t);
    thread->entered = true;
    thread->real = entered = pthread_self();
    self = thread;
    if (before != NULL) {
        before->ghost = false;
        before->state = ENDED;
        due_changed(before);
        (void)wake(end_of(before), ~0u, INT_MAX);
    }
    choose_anew();
}

int vt_spawn(int process, const char *name, void (*run)(void *), void *argument) {
    struct thread *thread = thread_fresh(process, name, vt_now());

    thread->plain = run;
    thread->argument = argument;
    return launch(thread, NULL) == 0 ? thread->id : -1;
}

int pthread_create(pthread_t *real, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    const uint32_t create_ns = config.costs.create_ns;
    struct thread *thread;
    char name[NAME];
    int error;

    if (!SIMULATED())
        return REAL(pthread_create)(real, attributes, run, argument);
    if (self->ghost)
        return EAGAIN;
    (void)snprintf(name, sizeof(name), "thread %d", thread_count);
    thread = thread_fresh(self->process, name,
                          self->t + draw_cost(&streams[NOISE], 2ull * create_ns) * processes[self->process].scale);
    thread->run = run;
    thread->argument = argument;
    error = launch(thread, attributes);
    if (error == 0)
        *real = thread->real;
    point(P_CREATE, create_ns);
    return error;
}

static struct thread *thread_by_real(pthread_t real) {
    for (int i = 0; i < thread_count; i++)
        if (threads[i].real == real && !threads[i].entered)
            return &threads[i];
    return NULL;
}

int pthread_join(pthread_t real, void **value) {
    struct thread *thread;

    if (!SIMULATED())
        return REAL(pthread_join)(real, value);
    thread = thread_by_real(real);
    if (thread == NULL)
        return ESRCH;
    point(P_MUTEX, config.costs.mutex_ns);
    while (thread->state != ENDED && !self->ghost)
        (void)block(end_of(thread), ~0u, NEVER);
    if (value != NULL)
        *value = thread->value;
    return 0;
}

void pthread_exit(void *value) {
    if (!SIMULATED() || self->entered)
        REAL(pthread_exit)(value);
    self->value = value;
    end(self);
}
