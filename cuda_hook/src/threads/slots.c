#include "threads/slots.h"

#include "base/kernel.h"

__thread struct es_slot *es_slot_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

__thread struct es_asked es_asked __attribute__((tls_model("initial-exec"), visibility("hidden")));

struct es_threads es_threads;

static struct es_slot *slots; /* mapped at the first use, so that a process without CUDA has none of it */
static size_t used;

static void *map(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static struct es_slot *all(void) {
    struct es_slot *known = __atomic_load_n(&slots, __ATOMIC_ACQUIRE);
    struct es_slot *fresh;

    if (known != NULL)
        return known;
    fresh = map(ES_SLOTS * sizeof(*fresh));
    if (fresh == NULL)
        return NULL;
    if (__atomic_compare_exchange_n(&slots, &known, fresh, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return fresh;
    (void)munmap(fresh, ES_SLOTS * sizeof(*fresh));
    return known;
}

static bool take(struct es_slot *slot, pid_t from, pid_t thread) {
    return __atomic_compare_exchange_n(&slot->thread, &from, thread, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* The first slot that no thread has had. */
static struct es_slot *take_free(struct es_slot *first, pid_t thread) {
    for (size_t i = 0; i < ES_SLOTS; i++) {
        size_t known = __atomic_load_n(&used, __ATOMIC_RELAXED);

        if (!take(&first[i], 0, thread))
            continue;
        while (known < i + 1 && !__atomic_compare_exchange_n(&used, &known, i + 1, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            ;
        return &first[i];
    }
    return NULL;
}

/* The first slot whose thread is no more. Threads leave without a word: their ends cannot be hooked without
 * libpthread, and need not be while slots are plenty. */
static struct es_slot *inherit(struct es_slot *first, pid_t thread) {
    for (size_t i = 0; i < ES_SLOTS; i++) {
        const pid_t owner = __atomic_load_n(&first[i].thread, __ATOMIC_RELAXED);

        /* A thread of the same number without a slot of its own is a later one. */
        if ((owner == thread || es_kernel_thread_ended(owner)) && first[i].batch.settled == first[i].launches &&
            !first[i].marking && take(&first[i], owner, thread))
            return &first[i];
    }
    return NULL;
}

struct es_slot *es_slot_mine(void) {
    struct es_slot *first, *mine;
    pid_t thread;

    if (es_slot_self != NULL)
        return es_slot_self;
    first = all();
    if (first == NULL)
        return NULL;
    thread = es_kernel_thread();
    mine = take_free(first, thread);
    if (mine == NULL)
        mine = inherit(first, thread);
    if (mine == NULL)
        return NULL;
    /* Others look into the table only while a batch of the thread is open, and so after this. */
    if (mine->passes == NULL)
        mine->passes = map(sizeof(*mine->passes));
    if (mine->passes == NULL) {
        __atomic_store_n(&mine->thread, 0, __ATOMIC_RELEASE);
        return NULL;
    }
    __atomic_store_n(&mine->busy, 0, __ATOMIC_RELAXED);
    es_slot_forget(mine);
    es_slot_self = mine;
    return mine;
}

bool es_slot_busy(struct es_slot *slot) {
    const int error = errno;

    if (__atomic_load_n(&slot->busy, __ATOMIC_ACQUIRE) != 0 &&
        es_kernel_thread_ended(__atomic_load_n(&slot->thread, __ATOMIC_RELAXED)))
        __atomic_store_n(&slot->busy, 0, __ATOMIC_RELAXED);
    errno = error;
    return __atomic_load_n(&slot->busy, __ATOMIC_ACQUIRE) != 0;
}

struct es_slot *es_slot_at(size_t index) { return &slots[index]; }

size_t es_slots_used(void) { return __atomic_load_n(&used, __ATOMIC_ACQUIRE); }

void es_slots_forget_words(void) {
    for (size_t i = 0; i < es_slots_used(); i++)
        __atomic_store_n(&es_slot_at(i)->word, 0, __ATOMIC_RELAXED);
}

ES_UNCHECKED void es_slots_reset(void) {
    es_threads = (struct es_threads){0};
    /* The tables stay, for threads of this process. */
    for (size_t i = 0; slots != NULL && i < ES_SLOTS; i++)
        slots[i] = (struct es_slot){.passes = slots[i].passes};
    used = 0;
    es_slot_self = NULL;
}
