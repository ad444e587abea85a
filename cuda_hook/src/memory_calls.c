#include <string.h>

#include "core/blocks.h"
#include "gate.h"
#include "life.h"
#include "log.h"
#include "memory.h"
#include "session.h"
#include "symbols.h"
#include "wrappers.h"

/* Every allocation reserves first, then asks the driver, then commits or cancels: so the manager's sum is never less
 * than what is in use, and a refusal is exact. A manager that is away is stood in for by the cap it last named. */

enum { DEVICES = 64 };

static struct es_lock lock;       /* of all below; never held across a call of the driver */
static struct es_blocks blocks;
static uint64_t totals[DEVICES];  /* of this process, by device */
static uint64_t pending[DEVICES]; /* within the driver just now, allowed by the cap last known */
static uint32_t sessions;         /* counts declarations: what was reserved before one is unknown after it */

struct reservation {
    uint64_t bytes;
    uint32_t number;
    uint32_t session;
    uint32_t device;
    CUcontext context;
    bool told;    /* the manager granted it, and waits for its outcome */
    bool pending; /* it counts in `pending` */
};

static bool counting(void)
{
    return es_mode_now() != ES_OUT && es_mode_now() != ES_NEW && !es_life_apart();
}

/* With the lock held. A record that the manager does not take is tried again: its ledger would be wrong for ever. */
static void tell(uint16_t kind, uint32_t number, uint64_t bytes, uint32_t device)
{
    struct es_memory record = {{kind, sizeof(record), number}, bytes, device, ES_MEMORY_PLAIN};
    bool sent = false;

    for (int i = 0; i < 1000 && !sent && es_mode_now() == ES_JOINED; i++) {
        es_lock_take(&es_gate.lock);
        sent = es_mode_now() == ES_JOINED && es_session_send(&record);
        es_lock_give(&es_gate.lock);
        if (!sent)
            es_sleep_on(&es_gate.progress, __atomic_load_n(&es_gate.progress, __ATOMIC_RELAXED), ES_MS);
    }
}

/* Asks the manager; *granted is its verdict. False when there is no manager to ask. */
static bool ask(uint32_t number, uint64_t bytes, uint32_t device, bool *granted)
{
    struct es_reserve record = {{ES_RESERVE, sizeof(record), number}, bytes, device, ES_MEMORY_PLAIN};
    struct es_reserved answer;

    if (es_mode_now() != ES_JOINED || !es_session_ask(&record, &answer, ES_RESERVED))
        return false;
    *granted = answer.granted != 0;
    return true;
}

static uint32_t session_now(void)
{
    uint32_t session;

    es_lock_take(&lock);
    session = sessions;
    es_lock_give(&lock);
    return session;
}

/* True when the manager, or without one the cap last known, lets this process take that much more. */
static bool reserve(struct reservation *reservation)
{
    const uint64_t cap = es_gate.config.memory_cap_bytes;
    const uint32_t device = reservation->device;
    bool granted = false;

    reservation->number = es_session_number();
    reservation->session = session_now();
    if (ask(reservation->number, reservation->bytes, device, &granted)) {
        reservation->told = granted;
        return granted;
    }
    es_lock_take(&lock);
    granted = cap == 0 || (totals[device] + pending[device] <= cap &&
                           reservation->bytes <= cap - totals[device] - pending[device]);
    if (granted) {
        reservation->pending = true;
        pending[device] += reservation->bytes;
    }
    es_lock_give(&lock);
    return granted;
}

/* The driver has answered: `address` is 0 when it refused. */
static void settle(const struct reservation *reservation, CUdeviceptr address, bool owned)
{
    const uint32_t device = reservation->device;
    struct es_block block = {address, reservation->bytes, device, ES_MEMORY_PLAIN, owned ? reservation->context : NULL};
    bool known, granted;

    es_lock_take(&lock);
    known = reservation->told && reservation->session == sessions;
    if (reservation->pending)
        pending[device] -= reservation->bytes;
    if (address == 0) {
        if (known)
            tell(ES_CANCEL, reservation->number, 0, device);
    } else if (es_blocks_add(&blocks, block)) {
        totals[device] += block.bytes;
        if (known) {
            tell(ES_COMMIT, reservation->number, block.bytes, device);
        } else if (es_mode_now() == ES_JOINED) {
            /* Allowed by nobody or by a manager that is gone: the one that is there now must hear of it. */
            const uint32_t number = es_session_number();

            if (ask(number, block.bytes, device, &granted) && granted)
                tell(ES_COMMIT, number, block.bytes, device);
        }
    } else if (known) {
        /* There is no memory to note it in; what is not noted cannot be freed in the ledger either. */
        tell(ES_CANCEL, reservation->number, 0, device);
    }
    es_lock_give(&lock);
}

/* Is this allocation to be counted, and on which device? Without a context the driver has something to say first. */
static bool begin(struct reservation *reservation, uint64_t bytes)
{
    CUdevice device;

    *reservation = (struct reservation){.bytes = bytes};
    if (bytes == 0 || !counting() || ES_DRIVER(cuCtxGetDevice)(&device) != CUDA_SUCCESS || device < 0 ||
        device >= DEVICES || ES_DRIVER(cuCtxGetCurrent)(&reservation->context) != CUDA_SUCCESS)
        return false;
    reservation->device = (uint32_t)device;
    return true;
}

/* An allocation of `bytes` that the driver makes by `call` and puts at *address. `owned`: it ends with its context. */
#define ALLOCATE(bytes, address, owned, call)                                   \
    struct reservation reservation;                                             \
    const bool counted = address != NULL && begin(&reservation, bytes);         \
    CUresult result;                                                            \
                                                                                \
    if (counted && !reserve(&reservation))                                      \
        return CUDA_ERROR_OUT_OF_MEMORY;                                        \
    result = call;                                                              \
    if (counted)                                                                \
        settle(&reservation, result == CUDA_SUCCESS ? *address : 0, owned);     \
    return result

CUresult es_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    ES_REAL_OR_RETURN(cuMemAlloc_v2);
    {
        ALLOCATE(bytesize, dptr, true, ES_DRIVER(cuMemAlloc_v2)(dptr, bytesize));
    }
}
ES_EXPORT(cuMemAlloc_v2);

/* Rows start at multiples of this: what the driver chooses is known only afterwards (512 on all devices since Kepler,
 * CUDA C++ Programming Guide). The reservation must not be less than what is taken. */
static uint64_t pitched_bytes(uint64_t width, uint64_t height)
{
    const uint64_t pitch = (width + 511) / 512 * 512;
    uint64_t bytes;

    return pitch < width || __builtin_mul_overflow(pitch, height, &bytes) ? UINT64_C(1) << 52 : bytes;
}

CUresult es_cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                               unsigned int ElementSizeBytes)
{
    ES_REAL_OR_RETURN(cuMemAllocPitch_v2);
    {
        ALLOCATE(pitched_bytes(WidthInBytes, Height), dptr, true,
                 ES_DRIVER(cuMemAllocPitch_v2)(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes));
    }
}
ES_EXPORT(cuMemAllocPitch_v2);

CUresult es_cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    ES_REAL_OR_RETURN(cuMemAllocManaged);
    {
        ALLOCATE(bytesize, dptr, true, ES_DRIVER(cuMemAllocManaged)(dptr, bytesize, flags));
    }
}
ES_EXPORT(cuMemAllocManaged);

/* Memory from a pool is counted by what is asked for; it outlives the context. */
#define ALLOCATE_ASYNC(name, parameters, arguments)                  \
    CUresult es_##name parameters                                    \
    {                                                                \
        ES_REAL_OR_RETURN(name);                                     \
        {                                                            \
            ALLOCATE(bytesize, dptr, false, ES_DRIVER(name) arguments); \
        }                                                            \
    }                                                                \
    ES_EXPORT(name)

ALLOCATE_ASYNC(cuMemAllocAsync, (CUdeviceptr * dptr, size_t bytesize, CUstream hStream), (dptr, bytesize, hStream));
ALLOCATE_ASYNC(cuMemAllocAsync_ptsz, (CUdeviceptr * dptr, size_t bytesize, CUstream hStream),
               (dptr, bytesize, hStream));
ALLOCATE_ASYNC(cuMemAllocFromPoolAsync,
               (CUdeviceptr * dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream),
               (dptr, bytesize, pool, hStream));
ALLOCATE_ASYNC(cuMemAllocFromPoolAsync_ptsz,
               (CUdeviceptr * dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream),
               (dptr, bytesize, pool, hStream));

/* A block is taken out before the driver frees it: another thread may get the address at once. */
static struct es_block take_out(CUdeviceptr address)
{
    struct es_block block = {0};

    if (address == 0 || !counting())
        return block;
    es_lock_take(&lock);
    block = es_blocks_remove(&blocks, address);
    es_lock_give(&lock);
    return block;
}

static void freed(struct es_block block, CUresult result)
{
    if (block.address == 0)
        return;
    es_lock_take(&lock);
    if (result != CUDA_SUCCESS) {
        (void)es_blocks_add(&blocks, block);
    } else {
        totals[block.device] -= block.bytes;
        tell(ES_FREED, 0, block.bytes, block.device);
    }
    es_lock_give(&lock);
}

#define FREE(name, parameters, arguments)                    \
    CUresult es_##name parameters                            \
    {                                                        \
        struct es_block block;                               \
        CUresult result;                                     \
                                                             \
        ES_REAL_OR_RETURN(name);                             \
        block = take_out(dptr);                              \
        result = ES_DRIVER(name) arguments;                  \
        freed(block, result);                                \
        return result;                                       \
    }                                                        \
    ES_EXPORT(name)

FREE(cuMemFree_v2, (CUdeviceptr dptr), (dptr));
FREE(cuMemFreeAsync, (CUdeviceptr dptr, CUstream hStream), (dptr, hStream));
FREE(cuMemFreeAsync_ptsz, (CUdeviceptr dptr, CUstream hStream), (dptr, hStream));

bool es_memory_used(uint32_t device, unsigned long long *bytes)
{
    struct es_memory_query record = {{ES_MEMORY_QUERY, sizeof(record), es_session_number()}, device, 0};
    struct es_memory_info info;

    if (!counting() || device >= DEVICES)
        return false;
    if (es_mode_now() == ES_JOINED && es_session_ask(&record, &info, ES_MEMORY_INFO)) {
        *bytes = info.used_bytes;
        return true;
    }
    es_lock_take(&lock);
    *bytes = totals[device];
    es_lock_give(&lock);
    return true;
}

CUresult es_cuMemGetInfo_v2(size_t *free, size_t *total)
{
    const uint64_t cap = es_gate.config.memory_cap_bytes;
    unsigned long long used;
    CUdevice device;
    CUresult result;

    ES_REAL_OR_RETURN(cuMemGetInfo_v2);
    result = ES_DRIVER(cuMemGetInfo_v2)(free, total);
    if (result != CUDA_SUCCESS || free == NULL || total == NULL || cap == 0 ||
        ES_DRIVER(cuCtxGetDevice)(&device) != CUDA_SUCCESS || device < 0 || !es_memory_used((uint32_t)device, &used))
        return result;
    if (*total > cap)
        *total = cap;
    if (used > cap)
        used = cap;
    if (*free > cap - used)
        *free = cap - used;
    return result;
}
ES_EXPORT(cuMemGetInfo_v2);

CUresult es_cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    CUresult result;

    ES_REAL_OR_RETURN(cuDeviceTotalMem_v2);
    result = ES_DRIVER(cuDeviceTotalMem_v2)(bytes, dev);
    if (result == CUDA_SUCCESS) {
        /* Programs ask before they have made a context. */
        es_session_join();
        if (counting() && es_gate.config.memory_cap_bytes != 0 && *bytes > es_gate.config.memory_cap_bytes)
            *bytes = es_gate.config.memory_cap_bytes;
    }
    return result;
}
ES_EXPORT(cuDeviceTotalMem_v2);

void es_memory_declare(void)
{
    bool granted;

    es_lock_take(&lock);
    sessions++;
    for (uint32_t device = 0; device < DEVICES; device++) {
        const uint32_t number = es_session_number();

        if (totals[device] == 0 || !ask(number, totals[device], device, &granted))
            continue;
        if (granted)
            tell(ES_COMMIT, number, totals[device], device);
        else
            es_log("the manager has no room for the %llu bytes of device %u that this process has",
                   (unsigned long long)totals[device], device);
    }
    es_lock_give(&lock);
}

void es_memory_context_ended(CUcontext context)
{
    size_t place = 0;
    struct es_block block;

    if (context == NULL || !counting())
        return;
    es_lock_take(&lock);
    while ((block = es_blocks_remove_owned(&blocks, context, &place)).address != 0) {
        totals[block.device] -= block.bytes;
        tell(ES_FREED, 0, block.bytes, block.device);
    }
    es_lock_give(&lock);
}

void es_memory_reset(void)
{
    lock = (struct es_lock){0};
    es_blocks_clear(&blocks);
    memset(totals, 0, sizeof(totals));
    memset(pending, 0, sizeof(pending));
}
