#include "loader/thread.h"

#include <errno.h>
#include <pthread.h>

#include "loader/lookups.h"

enum {
    STACK_BYTES = 512 * 1024, /* the driver's calls want some; only what is touched is there */
    LARGE_STACK_BYTES = 16 * 1024 * 1024,
};

typedef int (*create_function)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
typedef int (*attr_init_function)(pthread_attr_t *);
typedef int (*attr_set_size_function)(pthread_attr_t *, size_t);
typedef int (*attr_set_int_function)(pthread_attr_t *, int);

int es_thread_start(void *(*run)(void *)) {
    /* Before glibc 2.34 these are in libpthread: there, since a driver is, but not to be linked to. */
    const create_function create = (create_function)es_global_symbol("pthread_create");
    const attr_init_function attr_init = (attr_init_function)es_global_symbol("pthread_attr_init");
    const attr_set_size_function set_stack = (attr_set_size_function)es_global_symbol("pthread_attr_setstacksize");
    const attr_set_int_function set_detached = (attr_set_int_function)es_global_symbol("pthread_attr_setdetachstate");
    pthread_attr_t attributes;
    pthread_t thread;
    int error = -1;

    if (create != NULL && attr_init != NULL && set_stack != NULL && set_detached != NULL && attr_init(&attributes) == 0 &&
        set_stack(&attributes, STACK_BYTES) == 0 && set_detached(&attributes, PTHREAD_CREATE_DETACHED) == 0) {
        error = create(&thread, &attributes, run, NULL);
        /* The thread-local data of all libraries stands on that stack too, and may be larger than this. */
        if (error == EINVAL && set_stack(&attributes, LARGE_STACK_BYTES) == 0)
            error = create(&thread, &attributes, run, NULL);
    }
    return error;
}
