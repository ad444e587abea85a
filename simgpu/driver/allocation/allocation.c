/* Allocations: the table of all that this process has. Device memory is address space of this process: what is copied to
 * it can be copied back, and a GPU's capacity is a number in the machine. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "driver/allocation/allocation.h"
#include "driver/base/driver.h"
#include "driver/base/sizes.h"
#include "driver/context/context.h"
#include "driver/physical/backing.h"
#include "driver/physical/physical.h"
#include "driver/pool/pool.h"

/* All allocations of the process, in the order of their addresses. */
static struct {
    pthread_mutex_t lock;
    struct allocation *items;
    size_t count;
    size_t room;
    uint64_t last_id;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The number of allocations that begin at or before the address. Under the table's lock. */
static size_t before(uintptr_t address) {
    size_t low = 0, high = table.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table.items[middle].begin <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool find_allocation(uintptr_t address, struct allocation *found) {
    pthread_mutex_lock(&table.lock);
    size_t place = before(address);
    bool holds = place && address - table.items[place - 1].begin < table.items[place - 1].size;
    if (holds)
        *found = table.items[place - 1];
    pthread_mutex_unlock(&table.lock);
    return holds;
}

bool find_range(uintptr_t address, size_t size, struct allocation *found) {
    bool holds = false;
    pthread_mutex_lock(&table.lock);
    size_t place = before(address);
    if (place && address - table.items[place - 1].begin < table.items[place - 1].size) {
        *found = table.items[place - 1];
        size_t held = found->size - (address - found->begin);
        /* Mappings side by side are one range; other allocations are not. */
        for (; held < size && place < table.count && found->kind == ALLOCATION_VIRTUAL; place++) {
            const struct allocation *next = &table.items[place];
            if (next->kind != ALLOCATION_VIRTUAL || next->begin != address + held)
                break;
            found->access &= next->access;
            held += next->size;
        }
        holds = held >= size;
    }
    pthread_mutex_unlock(&table.lock);
    return holds;
}

bool anything_in(uintptr_t begin, size_t size) {
    pthread_mutex_lock(&table.lock);
    size_t place = before(begin + size - 1);
    bool any = place && table.items[place - 1].begin + table.items[place - 1].size > begin;
    pthread_mutex_unlock(&table.lock);
    return any;
}

bool insert_allocation(struct allocation *allocation) {
    pthread_mutex_lock(&table.lock);
    bool room = table.count < table.room;
    if (!room) {
        size_t more = table.room ? table.room * 2 : 64;
        struct allocation *items = realloc(table.items, more * sizeof *items);
        if (items) {
            table.items = items;
            table.room = more;
            room = true;
        }
    }
    if (room) {
        size_t place = before(allocation->begin);
        memmove(&table.items[place + 1], &table.items[place], (table.count - place) * sizeof *table.items);
        allocation->id = ++table.last_id;
        table.items[place] = *allocation;
        table.count++;
    }
    pthread_mutex_unlock(&table.lock);
    return room;
}

/* Under the table's lock. */
static void remove_at(size_t place, struct allocation *removed) {
    *removed = table.items[place];
    memmove(&table.items[place], &table.items[place + 1], (table.count - place - 1) * sizeof *table.items);
    table.count--;
}

bool remove_allocation(uintptr_t begin, enum allocation_kind kind, struct allocation *removed) {
    pthread_mutex_lock(&table.lock);
    size_t place = before(begin);
    bool found = place && table.items[place - 1].begin == begin && table.items[place - 1].kind == kind;
    if (found)
        remove_at(place - 1, removed);
    pthread_mutex_unlock(&table.lock);
    return found;
}

void set_access(uintptr_t begin, uint32_t access) {
    pthread_mutex_lock(&table.lock);
    size_t place = before(begin);
    if (place && table.items[place - 1].begin == begin)
        table.items[place - 1].access = access;
    pthread_mutex_unlock(&table.lock);
}

/* ---- making and ending ---- */

static void give_back(const struct allocation *allocation) {
    if (allocation->mapped)
        munmap((void *)allocation->begin, allocation->mapped);
    if (allocation->offset)
        backing_give(-1, allocation->offset, allocation->mapped);
    if (allocation->pool && allocation->charged)
        pool_give(allocation->pool, allocation->charged, allocation->context);
    else if (allocation->charged)
        machine_give_memory(&driver.machine, allocation->context->gpu, allocation->context->index, allocation->charged);
    if (allocation->physical)
        physical_unmapped(allocation->physical);
}

static bool charge(const struct allocation *allocation) {
    const struct CUctx_st *context = allocation->context;
    if (!allocation->charged)
        return true;
    return allocation->pool ? pool_take(allocation->pool, allocation->charged)
                            : machine_take_memory(&driver.machine, context->gpu, context->index, allocation->charged);
}

static bool map(struct allocation *allocation) {
    size_t size = round_up(allocation->size, PAGE);
    if (is_device_memory(allocation->kind)) {
        allocation->offset = backing_take(size);
        if (allocation->offset && (allocation->flags & ALLOCATE_LOW))
            allocation->begin = backing_map_low(allocation->offset, size);
        else if (allocation->offset)
            allocation->begin = backing_map(-1, allocation->offset, size, 0, true);
    } else {
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
        allocation->begin = memory == MAP_FAILED ? 0 : (uintptr_t)memory;
    }
    if (allocation->begin)
        allocation->mapped = size;
    return allocation->begin != 0;
}

CUresult allocation_make(struct CUctx_st *context, size_t size, enum allocation_kind kind, unsigned int flags,
                         struct CUmemPoolHandle_st *pool, uintptr_t *made) {
    const struct simgpu_model *model = &driver.machine.shared->gpus[context->gpu].model;
    if (size > SIZE_MAX / 2)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct allocation allocation = {.size = size,
                                    .kind = kind,
                                    .flags = flags,
                                    .device = pool ? pool_device(pool) : context->device,
                                    .context = context,
                                    .pool = pool};
    /* On an integrated GPU host allocations come out of the same memory. */
    if (is_device_memory(kind) || model->integrated)
        allocation.charged = round_up(size, BLOCK);
    if (!charge(&allocation))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!map(&allocation) || !insert_allocation(&allocation)) {
        give_back(&allocation);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = allocation.begin;
    return CUDA_SUCCESS;
}

CUresult release(uintptr_t begin, enum allocation_kind kind) {
    struct allocation allocation;
    if (!remove_allocation(begin, kind, &allocation))
        return CUDA_ERROR_INVALID_VALUE;
    give_back(&allocation);
    return CUDA_SUCCESS;
}

void allocations_end(struct CUctx_st *context) {
    for (;;) {
        struct allocation allocation = {0};
        pthread_mutex_lock(&table.lock);
        for (size_t place = 0; place < table.count && !allocation.size; place++) {
            if (table.items[place].context == context)
                remove_at(place, &allocation);
        }
        pthread_mutex_unlock(&table.lock);
        if (!allocation.size)
            return;
        give_back(&allocation);
    }
}
