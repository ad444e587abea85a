/* What the machine itself takes to pass a word from one process to another: the floor under a hand-over. No edgeshare
 * in it.
 *
 *   floor client FD SAMPLES PAUSE_US first|second   two of these throw a time stamp to and fro, through a relay;
 *                                                   each prints how long every one it caught was under way (ns)
 *   floor relay FD FD                               passes each packet on to the other descriptor, until one ends
 *   floor futex SAMPLES PAUSE_US                    the same between two processes and one futex
 *   floor wake SAMPLES                              sleeps 1 ms at a time; prints how late each awakening was (ns)
 */
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STALLED_NS 10000000000u /* a partner that is silent for so long is gone */

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* As long as a slice lasts, both sides sleep: a wake-up from a deep sleep is what a hand-over pays. */
static void pause_us(long us) {
    struct timespec pause = {us / 1000000, us % 1000000 * 1000};
    while (nanosleep(&pause, &pause) != 0) {}
}

static int client(int fd, long samples, long us, int first) {
    uint64_t stamp;
    if (first) {
        stamp = now_ns();
        if (send(fd, &stamp, sizeof stamp, MSG_NOSIGNAL) < 0)
            return 1;
    }
    for (long i = 0; i < samples; i++) {
        if (recv(fd, &stamp, sizeof stamp, 0) != (ssize_t)sizeof stamp)
            return 1;
        printf("%llu\n", (unsigned long long)(now_ns() - stamp));
        pause_us(us);
        stamp = now_ns();
        /* The other one may have all its samples and be gone. */
        if (send(fd, &stamp, sizeof stamp, MSG_NOSIGNAL) < 0)
            break;
    }
    return 0;
}

static int relay(int a, int b) {
    struct pollfd fds[2] = {{a, POLLIN, 0}, {b, POLLIN, 0}};
    for (;;) {
        if (poll(fds, 2, -1) < 0)
            return 1;
        for (int i = 0; i < 2; i++) {
            char packet[64];
            if (fds[i].revents == 0)
                continue;
            ssize_t size = recv(fds[i].fd, packet, sizeof packet, 0);
            if (size <= 0)
                return 0;
            if (send(fds[1 - i].fd, packet, (size_t)size, MSG_NOSIGNAL) < 0)
                return 0;
        }
    }
}

struct page {
    _Atomic uint32_t word;
    _Atomic uint64_t stamp;
};

/* Waits until the word is `wanted`; 0, or 1 when nothing happened for long. */
static int await(struct page *page, uint32_t wanted) {
    struct timespec limit = {STALLED_NS / 1000000000u, 0};
    uint32_t seen;
    while ((seen = atomic_load(&page->word)) != wanted) {
        uint64_t before = now_ns();
        syscall(SYS_futex, &page->word, FUTEX_WAIT, seen, &limit, NULL, 0);
        if (now_ns() - before >= STALLED_NS)
            return 1;
    }
    return 0;
}

static int futex(long samples, long us) {
    struct page *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return 1;
    pid_t child = fork();
    if (child < 0)
        return 1;
    uint32_t mine = child != 0;
    if (child == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (long i = 0; i < samples; i++) {
        if (await(page, mine) != 0) {
            if (child != 0)
                kill(child, SIGKILL);
            return 1;
        }
        uint64_t took = now_ns() - atomic_load(&page->stamp);
        /* The parent alone prints: the child's first catch was thrown by nobody. */
        if (child != 0)
            printf("%llu\n", (unsigned long long)took);
        pause_us(us);
        atomic_store(&page->stamp, now_ns());
        atomic_store(&page->word, 1 - mine);
        syscall(SYS_futex, &page->word, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
    if (child == 0)
        _exit(0);
    return waitpid(child, NULL, 0) == child ? 0 : 1;
}

static int wake(long samples) {
    prctl(PR_SET_TIMERSLACK, 1);
    for (long i = 0; i < samples; i++) {
        uint64_t due_ns = now_ns() + 1000000;
        struct timespec due = {(time_t)(due_ns / 1000000000u), (long)(due_ns % 1000000000u)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) != 0) {}
        printf("%llu\n", (unsigned long long)(now_ns() - due_ns));
    }
    return 0;
}

int main(int count, char **words) {
    if (count == 6 && strcmp(words[1], "client") == 0)
        return client(atoi(words[2]), atol(words[3]), atol(words[4]), strcmp(words[5], "first") == 0);
    if (count == 4 && strcmp(words[1], "relay") == 0)
        return relay(atoi(words[2]), atoi(words[3]));
    if (count == 4 && strcmp(words[1], "futex") == 0)
        return futex(atol(words[2]), atol(words[3]));
    if (count == 3 && strcmp(words[1], "wake") == 0)
        return wake(atol(words[2]));
    fprintf(stderr, "floor: expected client, relay, futex or wake; see the head of floor.c\n");
    return 2;
}
