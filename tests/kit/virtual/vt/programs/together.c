/* Threads of one process, and words that two processes share. */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "programs.h"

enum { THREADS = 4, ROUNDS = 50 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t semaphore;
static struct vt_sem own_semaphore;
static int64_t counter, begun, inside, most_inside, torn;

static void begin_once(void) {
    vt_spend(100 * US);
    begun++;
}

static void *work(void *argument) {
    (void)pthread_once(&once, begin_once);
    torn += begun != 1;
    for (int i = 0; i < ROUNDS; i++) {
        (void)pthread_mutex_lock(&mutex);
        const int64_t seen = counter;
        vt_spend(5 * US);
        counter = seen + 1;
        (void)pthread_cond_signal(&condition);
        (void)pthread_mutex_unlock(&mutex);
        (void)sem_wait(&semaphore);
        most_inside = ++inside > most_inside ? inside : most_inside;
        vt_spend(5 * US);
        inside--;
        (void)sem_post(&semaphore);
        (void)pthread_rwlock_wrlock(&lock);
        const int64_t before = begun++;
        vt_spend(US);
        begun = before;
        (void)pthread_rwlock_unlock(&lock);
        (void)pthread_rwlock_rdlock(&lock);
        torn += begun != 1;
        (void)pthread_rwlock_unlock(&lock);
    }
    vt_sem_post(&own_semaphore);
    return argument;
}

void threads(void) {
    pthread_t made[THREADS];
    int64_t joined = 0;
    void *value;

    (void)sem_init(&semaphore, 0, 2);
    for (intptr_t i = 0; i < THREADS; i++)
        must(pthread_create(&made[i], NULL, work, (void *)(i + 1)) == 0, "a thread");
    (void)pthread_mutex_lock(&mutex);
    while (counter < THREADS * ROUNDS / 2)
        (void)pthread_cond_wait(&condition, &mutex);
    (void)pthread_mutex_unlock(&mutex);
    for (int i = 0; i < THREADS; i++)
        vt_sem_wait(&own_semaphore);
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(made[i], &value);
        joined += (intptr_t)value;
    }
    say("counter", counter);
    say("joined", joined);
    say("most_inside", most_inside);
    say("torn", torn);
}

static int file;
static uint32_t *mapped[2];
static uint64_t woken_at, wake_at, private_woken;

static uint32_t *map_file(void) { return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0); }

static void wait_for_word(void *argument) {
    (void)argument;
    mapped[0] = map_file();
    while (__atomic_load_n(&mapped[0][3], __ATOMIC_SEQ_CST) == 0)
        (void)syscall(SYS_futex, &mapped[0][3], FUTEX_WAIT, 0, NULL, NULL, 0);
    woken_at = vt_now();
}

static void set_word(void *argument) {
    (void)argument;
    mapped[1] = map_file();
    vt_sleep(MS);
    __atomic_store_n(&mapped[1][3], 1, __ATOMIC_SEQ_CST);
    private_woken = (uint64_t)syscall(SYS_futex, &mapped[1][3], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    wake_at = vt_now();
    (void)syscall(SYS_futex, &mapped[1][3], FUTEX_WAKE, 1, NULL, NULL, 0);
}

void shared_futex(void) {
    file = memfd_create("shared", MFD_CLOEXEC);
    must(file >= 0 && ftruncate(file, 4096) == 0, "a file in memory");
    (void)vt_spawn(vt_process("waiter", NULL, 1), "waits", wait_for_word, NULL);
    (void)vt_spawn(vt_process("waker", NULL, 1), "sets", set_word, NULL);
    vt_sleep(10 * MS);
    say("two_places", mapped[0] != mapped[1]);
    say("private_woken", (int64_t)private_woken);
    say("after_wake_us", (int64_t)((woken_at - wake_at) / US));
}
