/* What code that was compiled with -fsanitize=thread calls, in the place of the sanitizer's library: each of its
 * atomic operations is a point. Its other reads and writes are not, since threads of a correct program share nothing by
 * those. */
#include <string.h>

#include "machine.h"

enum { ATOMIC_NS = 5 };

void __tsan_init(void);
void __tsan_func_entry(void *);
void __tsan_func_exit(void);

#define POINT()                                                      \
    do {                                                             \
        if (__builtin_expect(config.atomics != 0, 0) && SIMULATED()) \
            point(P_ATOMIC, ATOMIC_NS);                              \
    } while (0)

#define FETCH(bits, type, name, operation)                                          \
    type __tsan_atomic##bits##_##name(volatile type *word, type value, int order);  \
    type __tsan_atomic##bits##_##name(volatile type *word, type value, int order) { \
        (void)order;                                                                \
        POINT();                                                                    \
        return operation(word, value, __ATOMIC_SEQ_CST);                            \
    }

#define EXCHANGE_IF(bits, type, name)                                                                             \
    int __tsan_atomic##bits##_##name(volatile type *word, type *expected, type value, int order, int otherwise);  \
    int __tsan_atomic##bits##_##name(volatile type *word, type *expected, type value, int order, int otherwise) { \
        (void)order;                                                                                              \
        (void)otherwise;                                                                                          \
        POINT();                                                                                                  \
        return __atomic_compare_exchange_n(word, expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);         \
    }

#define ATOMICS(bits, type)                                                                                                     \
    type __tsan_atomic##bits##_load(const volatile type *word, int order);                                                      \
    type __tsan_atomic##bits##_load(const volatile type *word, int order) {                                                     \
        (void)order;                                                                                                            \
        POINT();                                                                                                                \
        return __atomic_load_n(word, __ATOMIC_SEQ_CST);                                                                         \
    }                                                                                                                           \
    void __tsan_atomic##bits##_store(volatile type *word, type value, int order);                                               \
    void __tsan_atomic##bits##_store(volatile type *word, type value, int order) {                                              \
        (void)order;                                                                                                            \
        POINT();                                                                                                                \
        __atomic_store_n(word, value, __ATOMIC_SEQ_CST);                                                                        \
    }                                                                                                                           \
    FETCH(bits, type, exchange, __atomic_exchange_n)                                                                            \
    FETCH(bits, type, fetch_add, __atomic_fetch_add)                                                                            \
    FETCH(bits, type, fetch_sub, __atomic_fetch_sub)                                                                            \
    FETCH(bits, type, fetch_and, __atomic_fetch_and)                                                                            \
    FETCH(bits, type, fetch_or, __atomic_fetch_or)                                                                              \
    FETCH(bits, type, fetch_xor, __atomic_fetch_xor)                                                                            \
    FETCH(bits, type, fetch_nand, __atomic_fetch_nand)                                                                          \
    EXCHANGE_IF(bits, type, compare_exchange_strong)                                                                            \
    EXCHANGE_IF(bits, type, compare_exchange_weak)                                                                              \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *word, type expected, type value, int order, int otherwise);  \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *word, type expected, type value, int order, int otherwise) { \
        (void)order;                                                                                                            \
        (void)otherwise;                                                                                                        \
        POINT();                                                                                                                \
        (void)__atomic_compare_exchange_n(word, &expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                       \
        return expected;                                                                                                        \
    }

ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

#define NOTHING(name, parameters) \
    void name parameters;         \
    void name parameters {}

#define ACCESSES(bytes)                                                        \
    NOTHING(__tsan_read##bytes, (__attribute__((unused)) void *at))            \
    NOTHING(__tsan_write##bytes, (__attribute__((unused)) void *at))           \
    NOTHING(__tsan_unaligned_read##bytes, (__attribute__((unused)) void *at))  \
    NOTHING(__tsan_unaligned_write##bytes, (__attribute__((unused)) void *at)) \
    NOTHING(__tsan_volatile_read##bytes, (__attribute__((unused)) void *at))   \
    NOTHING(__tsan_volatile_write##bytes, (__attribute__((unused)) void *at))

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)
NOTHING(__tsan_read_range, (__attribute__((unused)) void *at, __attribute__((unused)) unsigned long size))
NOTHING(__tsan_write_range, (__attribute__((unused)) void *at, __attribute__((unused)) unsigned long size))
NOTHING(__tsan_vptr_update, (__attribute__((unused)) void *at, __attribute__((unused)) void *value))
NOTHING(__tsan_init, (void))
NOTHING(__tsan_func_entry, (__attribute__((unused)) void *caller))
NOTHING(__tsan_func_exit, (void))
NOTHING(__tsan_atomic_signal_fence, (__attribute__((unused)) int order))

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order) {
    (void)order;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
