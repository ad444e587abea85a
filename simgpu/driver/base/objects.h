/* What a handle leads to: an object by its mark, its memory, and what is noted where it is no such object. */
#ifndef SIMGPU_OBJECTS_H
#define SIMGPU_OBJECTS_H

#include <pthread.h>
#include <stdbool.h>

#include "driver_api.h"

/* Objects begin with their mark and keep their memory when they are destroyed (it is used again for objects of the same kind), so that a stale
 * handle is told by its mark: not before many others were destroyed after it. */
enum mark {
    MARK_CONTEXT = 0x63747831,
    MARK_STREAM = 0x73747231,
    MARK_EVENT = 0x65767431,
    MARK_MODULE = 0x6d6f6431,
    MARK_FUNCTION = 0x66756e31,
    MARK_POOL = 0x706f6f31,
    MARK_GRAPH = 0x67726131,
    MARK_NODE = 0x6e6f6431,
    MARK_EXEC = 0x67657831,
    MARK_ARRAY = 0x61727231,
    MARK_MIPMAP = 0x6d697031,
    MARK_EXTERNAL_MEMORY = 0x656d6d31,
    MARK_SEMAPHORE = 0x73656d31,
    MARK_LINK = 0x6c6e6b31,
    MARK_TEXTURE = 0x74657831,
    MARK_SURFACE = 0x73757231,
    MARK_REFERENCE = 0x72656631
};

/* Memory for an object, zeroed, and back. */
struct object_pool {
    pthread_mutex_t lock;
    void *oldest, *latest; /* of those dropped */
    unsigned int dropped;
};
void *object_make(struct object_pool *pool, size_t size);
void object_drop(struct object_pool *pool, void *object);
/* Drops an object that is of no pool: it is freed when as many others have been dropped like this. */
void object_free(void *object);

/* What a real driver need not survive. */
enum misuse {
    MISUSE_DESTROYED,  /* of an object that is not any more */
    MISUSE_UNKNOWN,    /* of what never was such an object */
    MISUSE_NO_CONTEXT, /* a call that needs a context, in a thread that has none */
    MISUSE_FORKED      /* a call in a child of the process that initialised the driver */
};

/* Notes such a call in the machine, so that no test passes with it; it is answered with an error. */
void misused(const char *call, const char *object, enum misuse kind);
/* Whether the handle is a living object of that kind; where it is not, that is noted. */
bool is_live(const void *handle, enum mark mark, const char *call);
#define LIVES(handle, mark) is_live(handle, mark, __func__)

#endif
