/* CUDA programs as data: each thread of a client runs a list of steps over the driver API. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

/* What a step does. `object` numbers what it is done to, `count` how often, `amount` is in ns or bytes. */
enum step_kind {
    STEP_LAUNCH = 1,   /* kernel `object` (ANY: drawn by weight) on `stream`, `count` times */
    STEP_GRAPH,        /* graph `object` on `stream`, `count` times */
    STEP_CAPTURE,      /* graph `object` becomes `count` launches of kernel `amount`, captured */
    STEP_DROP_GRAPH,   /* graph `object` is destroyed */
    STEP_WAIT,         /* for the context */
    STEP_WAIT_STREAM,  /* for `stream` */
    STEP_QUERY_STREAM, /* asks `stream` until it has nothing left, `amount` ns between two looks */
    STEP_RECORD,       /* event `object` on `stream` */
    STEP_WAIT_EVENT,   /* the thread, for event `object` */
    STEP_ORDER,        /* `stream` behind event `object` */
    STEP_THINK,        /* sleeps `amount` ns */
    STEP_COMPUTE,      /* uses the processor for `amount` ns */
    STEP_ALLOC,        /* buffer `object` of `amount` bytes; it may be refused */
    STEP_ALLOC_ASYNC,  /* the same from the stream's pool */
    STEP_FREE,         /* buffer `object`, where it is there */
    STEP_FREE_ASYNC,
    STEP_UPLOAD,       /* `amount` bytes to buffer `object`, waited for */
    STEP_DOWNLOAD,     /* from it */
    STEP_FILL,         /* sets its bytes, on `stream` */
    STEP_FETCH,        /* `amount` bytes from buffer `object` on `stream`, not waited for */
    STEP_TAKE,         /* waits for turn `object` */
    STEP_PASS,         /* gives turn `object` */
    STEP_ROUND,        /* one round more is done */
    STEP_RENEW_STREAM, /* destroys `stream` and makes it anew, `amount` 1: as one that the default stream waits for */
    STEP_END,          /* the thread ends */
    STEP_DUE,          /* sleeps until the next multiple of `amount` ns */
    STEP_HOST,         /* a function of the host's on `stream`, which sleeps `amount` ns */
};

enum { ANY = UINT32_MAX, KERNELS = 512, STREAMS = 16, EVENTS = 16, BUFFERS = 16, GRAPHS = 8, TURNS = 16 };

struct step {
    uint32_t kind, object, stream, count;
    uint64_t amount;
};

struct kernel {
    uint64_t duration_ns;
    uint32_t function; /* several may be of one function, which then takes now so long, now so long */
    uint32_t weight;
    uint32_t blocks;
};

/* What became of a client, for the judge. */
struct outcome {
    uint64_t rounds, launches, asked_ns, refused;
    int64_t held_bytes;  /* of buffers that it has now */
    int32_t error;       /* the first CUDA error that was none of those that may be */
    uint32_t error_step; /* the kind of step that it came from */
    uint32_t running;    /* its threads that have not ended */
};

struct client;

/* A process with a copy of the driver and, where `hook` is not NULL, of the hook, both under `root`, which must be
 * there; before each launch it uses the processor for `launch_ns`. NULL and a message on stderr where a copy cannot be
 * made. */
struct client *client_new(const char *name, const char *root, const char *hook, const char *driver, uint64_t launch_ns);
int client_process(const struct client *client);
void client_kernel(struct client *client, uint32_t index, struct kernel kernel);
/* Each of these begins one thread, all of them once the first has made context and functions; after the last step it
 * goes on at step `again`, or ends where that is `count`. */
void client_thread(struct client *client, const struct step *steps, uint32_t count, uint32_t again);
void client_start(struct client *client, uint64_t delay_ns);
struct outcome client_outcome(const struct client *client);

#endif
