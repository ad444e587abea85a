/* Time: determinism, order, and races with deadlines. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "programs.h"

enum { ROUNDS = 300 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static uint32_t word, ready;
static int ends[2];

static void churn(void *argument) {
    struct timespec now;

    for (int i = 0; i < ROUNDS; i++) {
        vt_spend(1 + vt_random(20 * US));
        (void)pthread_mutex_lock(&mutex);
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        vt_note("now", (uint64_t)now.tv_nsec);
        ready++;
        (void)pthread_cond_signal(&condition);
        (void)pthread_mutex_unlock(&mutex);
        (void)syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
        if (i % 7 == 0)
            (void)send(*(int *)argument, "x", 1, MSG_DONTWAIT);
    }
}

static void drain(void *argument) {
    const struct timespec most = {0, 100 * (long)US};
    char letter;

    for (int i = 0; i < ROUNDS; i++) {
        (void)pthread_mutex_lock(&mutex);
        while (ready == 0)
            (void)pthread_cond_wait(&condition, &mutex);
        ready--;
        (void)pthread_mutex_unlock(&mutex);
        (void)syscall(SYS_futex, &word, FUTEX_WAIT, 0, &most, NULL, 0);
        (void)recv(*(int *)argument, &letter, 1, MSG_DONTWAIT);
    }
    vt_note("drained", ready);
}

void mixed(void) {
    const int one = vt_process("one", NULL, 1), other = vt_process("other", NULL, 3);

    must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "a pair of sockets");
    (void)vt_spawn(one, "churn", churn, &ends[0]);
    (void)vt_spawn(one, "churn too", churn, &ends[0]);
    (void)vt_spawn(other, "drain", drain, &ends[1]);
    (void)vt_spawn(other, "drain too", drain, &ends[1]);
    vt_sleep(100 * MS);
    say("switches", (int64_t)vt_switches());
}

static uint64_t last, inversions, effects;

static void act(void *argument) {
    (void)argument;
    for (int i = 0; i < ROUNDS; i++) {
        vt_spend(1 + vt_random(3 * US));
        inversions += vt_now() < last;
        last = vt_now();
        effects++;
        if (i % 10 == 0)
            vt_sleep(vt_random(10 * US));
    }
}

void order(void) {
    for (int i = 0; i < 6; i++)
        (void)vt_spawn(i < 3 ? 0 : vt_process("another", NULL, (uint32_t)i), "acts", act, NULL);
    vt_sleep(500 * MS);
    say("effects", (int64_t)effects);
    say("inversions", (int64_t)inversions);
}

static int result;
static uint64_t waited_ns, wake_result;

static void wait_with_deadline(void *argument) {
    const uint64_t began = vt_now(), ns = option("deadline_us", 0) * US;
    const struct timespec most = {0, (long)ns};

    (void)argument;
    result = syscall(SYS_futex, &word, FUTEX_WAIT, 0, &most, NULL, 0) == 0 ? 0 : errno;
    waited_ns = vt_now() - began;
}

static void wake_later(void *argument) {
    (void)argument;
    vt_sleep(option("wake_us", 0) * US);
    wake_result = (uint64_t)syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void race(void) {
    (void)vt_spawn(0, "waits", wait_with_deadline, NULL);
    (void)vt_spawn(0, "wakes", wake_later, NULL);
    vt_sleep(100 * MS);
    say("timed_out", result == ETIMEDOUT);
    say("woken", (int64_t)wake_result);
    say("waited_us", (int64_t)(waited_ns / US));
}

void lost_wake(void) {
    vt_lose_wake(option("number", 0));
    race();
    say("wakes", (int64_t)vt_wakes());
}
