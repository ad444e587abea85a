/* What the parts of the simulated driver share: its objects, and the few functions that cross files. */
#ifndef SIMGPU_DRIVER_H
#define SIMGPU_DRIVER_H

#include <pthread.h>
#include <stdbool.h>

#include "driver_api.h"
#include "machine/engine/engine.h"
#include "machine/machine.h"

#define EXPORT __attribute__((visibility("default")))

/* An entry point that works on a stream, in its legacy and its per-thread form: `do_NAME` does the work. The stream is
 * the parameter hStream, or the first argument of `do_NAME` where the call has none. */
#define EXPORT_PTSZ(name, params, ...)                             \
    EXPORT CUresult name params { return do_##name(__VA_ARGS__); } \
    EXPORT CUresult name##_ptsz params {                           \
        if (!hStream)                                              \
            hStream = CU_STREAM_PER_THREAD;                        \
        return do_##name(__VA_ARGS__);                             \
    }
#define EXPORT_PTDS(name, params, ...)                                               \
    EXPORT CUresult name params { return do_##name(CU_STREAM_LEGACY, __VA_ARGS__); } \
    EXPORT CUresult name##_ptds params { return do_##name(CU_STREAM_PER_THREAD, __VA_ARGS__); }

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

/* ---- process ---- */

enum { DEVICES = SIMGPU_GPUS };

struct driver {
    struct machine machine;
    int device_count;
    uint32_t gpu_of[DEVICES]; /* device ordinal → GPU of the machine */
    struct CUctx_st *primary[DEVICES];
    unsigned int primary_flags[DEVICES];
    unsigned int primary_count[DEVICES];
    struct CUmemPoolHandle_st *pools[DEVICES]; /* the current one of each device, NULL: the default */
    pthread_mutex_t lock;                      /* for what is above, allocations and modules; never held in a wait */
};

/* The driver once cuInit has succeeded. */
extern struct driver driver;

/* CUDA_SUCCESS, or why no call may pass: not initialised, forked, shut down. `call`: who asks. */
CUresult driver_check(const char *call);

/* The CUDA version of the driver, also before cuInit and without a device. */
int driver_cuda_version(void);

#define CHECK_DRIVER()                                  \
    do {                                                \
        CUresult driver_state = driver_check(__func__); \
        if (driver_state != CUDA_SUCCESS)               \
            return driver_state;                        \
    } while (0)

static inline bool valid_device(CUdevice device) { return device >= 0 && device < driver.device_count; }
/* The device that a GPU of the machine is here; −1: it cannot be seen. */
static inline CUdevice device_of_gpu(uint32_t gpu) {
    for (CUdevice device = 0; device < driver.device_count; device++) {
        if (driver.gpu_of[device] == gpu)
            return device;
    }
    return -1;
}
static inline struct simgpu_gpu *gpu_of_device(CUdevice device) { return &driver.machine.shared->gpus[driver.gpu_of[device]]; }

/* What a block may have of a multiprocessor's shared memory, once its function asks for it. */
int most_shared_bytes(const struct simgpu_model *model);

/* ---- contexts ---- */

enum { LIMITS = 7, PEERS = SIMGPU_GPUS };

struct CUstream_st {
    enum mark mark;
    struct CUctx_st *context;
    unsigned int flags;
    int priority;
    uint32_t id;
    uint64_t after;           /* the stream is done when the entry before this one is */
    struct capture *capture;  /* NULL: work on it runs */
    bool joined;              /* what it captured is before something that its capture's first stream does */
    struct CUstream_st *next; /* of its context */
};

struct CUctx_st {
    enum mark mark;
    bool primary;
    CUdevice device;
    uint32_t gpu;
    uint32_t index;
    uint64_t id;
    unsigned int flags;
    unsigned int api_version;
    unsigned int attached; /* times, by cuCtxAttach */
    CUfunc_cache cache;
    size_t limits[LIMITS];
    struct simgpu_context *shared;
    struct simgpu_ring *ring;
    struct simgpu_orders *orders; /* NULL: engines do not overlap */

    pthread_mutex_t lock; /* for what follows */
    uint64_t queued_ns;
    uint64_t blocking_after; /* like a stream's `after`, for all streams that the legacy stream waits for */
    uint32_t streams_made;
    struct CUstream_st legacy;
    struct CUstream_st *streams; /* made, and threads' own */
    struct host_worker *host;    /* runs host functions; NULL: there were none */
    struct CUevent_st *events;
    uint64_t peers[PEERS]; /* ids of contexts whose memory this one's kernels may use; 0: none */
};

/* The calling thread's context, in `context`. Here and below `call` is who asks, for what is noted of a misuse. */
CUresult current_context(struct CUctx_st **context, const char *call);
CUresult check_context(const struct CUctx_st *context, const char *call);
/* The same without a word of misuse. */
struct CUctx_st *context_if_any(void);

/* The calling thread's context, or return why there is none. */
#define CURRENT(context)                                      \
    struct CUctx_st *context;                                 \
    do {                                                      \
        CUresult found = current_context(&context, __func__); \
        if (found != CUDA_SUCCESS)                            \
            return found;                                     \
    } while (0)

CUresult context_make(struct CUctx_st **made, CUdevice device, unsigned int flags, unsigned int api_version);
CUresult context_end(struct CUctx_st *context);
/* Makes `context` current, over what was. */
CUresult context_push(struct CUctx_st *context);
void context_forget(struct CUctx_st *context);

/* ---- queue ---- */

/* The calling thread spends so long, as it would within a real driver. Under no lock. */
void pace_spend(uint64_t ns);
static inline const struct simgpu_pace *pace_now(void) { return &driver.machine.shared->pace; }

/* Queues work on a stream: blocks while the context's queue is full. `number` (may be NULL) becomes its number. `place`:
 * what it takes of a GPU whose engines overlap (enum simgpu_place). */
CUresult queue_push(struct CUstream_st *stream, uint32_t kind, uint64_t duration_ns, uint32_t place, uint64_t *number);
/* Where engines overlap: later work on the stream waits for the entry before `after` too. */
CUresult queue_order(struct CUstream_st *stream, uint64_t after);
/* Where engines overlap: an entry stands for all that the legacy stream is behind, so that it can be waited for. */
CUresult queue_gather(struct CUstream_st *stream);
/* Waits until the entry before `after` is done, and with it all that is before it in its stream (without overlap: in its
 * context). */
CUresult queue_wait(struct CUctx_st *context, uint64_t after, bool blocking);
/* Waits until it is an entry's turn, all that it is behind being done. */
CUresult queue_wait_turn(struct CUctx_st *context, uint64_t number, bool blocking);
/* Waits until all is done that the context has queued. */
CUresult queue_drain(struct CUctx_st *context, bool blocking);
/* Whether the GPU is another context's now, or is being switched to this one. */
bool queue_is_away(struct CUctx_st *context);
/* Whether the entry before `after` is known to be done; the second brings the simulation up to now first. */
bool queue_known_done(const struct CUctx_st *context, uint64_t after);
bool queue_done(struct CUctx_st *context, uint64_t after);
/* The error that the context is in, if any. */
CUresult queue_error(const struct CUctx_st *context);

/* ---- streams and events ---- */

/* The stream that a handle names for this thread. */
CUresult find_stream(CUstream handle, struct CUstream_st **stream, const char *call);
/* When the work queued on it so far is done. */
uint64_t stream_after(const struct CUstream_st *stream);
void streams_end(struct CUctx_st *context);

struct CUevent_st {
    enum mark mark;
    unsigned int flags;
    bool recorded;
    struct CUctx_st *context;
    uint64_t after;
    uint64_t record_ns;
    uint64_t done_ns;             /* 0: not known to be done */
    struct capture *capture;      /* last recorded in a stream that is being captured */
    struct CUstream_st *captured; /* in this one */
    int32_t export_index;         /* of one that other processes may have too */
    uint64_t export_id;
    struct CUevent_st *next;
};

/* Notes the times of events whose entries will soon be overwritten. Under the context's lock. */
void events_settle(struct CUctx_st *context);
void events_end(struct CUctx_st *context);

/* ---- modules ---- */

struct kernel;

struct CUfunc_st {
    enum mark mark;
    struct CUctx_st *context; /* NULL: a kernel of a library, for any context */
    struct CUmod_st *module;
    const struct kernel *kernel;
    bool own_kernel; /* `kernel` is this function's alone */
    int max_dynamic_shared_bytes;
    int carveout;
    uint64_t loaded_in; /* id of the context that last ran it; 0: none */
    struct CUfunc_st *next;
};

/* The function behind a CUfunction or a CUkernel handle. */
CUresult find_function(CUfunction handle, struct CUfunc_st **function, const char *call);
void modules_end(struct CUctx_st *context);

/* ---- objects ---- */

/* Memory for an object, zeroed, and back. */
struct object_pool {
    pthread_mutex_t lock;
    void *oldest, *latest; /* of those dropped */
    unsigned int dropped;
};
void *object_make(struct object_pool *pool, size_t size);
void object_drop(struct object_pool *pool, void *object);
/* The same for one that is of no pool: it is freed when as many others have been dropped like this. */
void object_free(void *object);

/* ---- misuse ---- */

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
