/* The shared file: made, opened, locked. */
#include "machine/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "machine/engine/engine.h"
#include "machine/lock.h"

#define DEFAULT_DIRECTORY "/dev/shm/simgpu"

static char opened[4096]; /* the directory of the machine that this process opened last */

static const char MAGIC[8] = {'S', 'I', 'M', 'G', 'P', 'U', '\r', '\n'};

/* Orders lie behind all GPUs, so that a machine without them is as if there were none. */
static uint64_t orders_offset(uint32_t gpus) {
    return sizeof(struct simgpu_machine) + (uint64_t)gpus * sizeof(struct simgpu_gpu);
}

static uint64_t file_size(uint32_t gpus, uint32_t overlap) {
    return orders_offset(gpus) + (overlap ? (uint64_t)gpus * SIMGPU_CONTEXTS * sizeof(struct simgpu_orders) : 0);
}

static int open_in(const char *directory, const char *name, int flags) {
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    if (length < 0 || (size_t)length >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    /* Any user of any container may use the machine; who may enter the directory decides. */
    int fd = open(path, flags | O_CLOEXEC, 0666);
    if (fd >= 0 && (flags & O_CREAT))
        fchmod(fd, 0666);
    return fd;
}

static bool exists_in(const char *directory, const char *name) {
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    return length > 0 && (size_t)length < sizeof path && access(path, F_OK) == 0;
}

static void describe(struct simgpu_machine *shared, const struct simgpu_plan *plan) {
    shared->version = SIMGPU_VERSION;
    shared->gpu_count = plan->gpu_count;
    shared->size_bytes = file_size(plan->gpu_count, plan->overlap);
    shared->overlap = plan->overlap;
    shared->scheduling = plan->scheduling;
    shared->cuda_version = plan->cuda_version;
    shared->created_ns = clock_now_ns();
    shared->pace = plan->pace;
    shared->nvml = plan->nvml;
    memcpy(shared->driver_version, plan->driver_version, sizeof shared->driver_version);
    for (uint32_t index = 0; index < plan->gpu_count; index++) {
        struct simgpu_gpu *gpu = &shared->gpus[index];
        gpu->model = plan->models[index];
        memcpy(gpu->uuid, plan->uuids[index], sizeof gpu->uuid);
        /* Buses as a server with one card a root port numbers them. */
        gpu->pci_bus = 0x10 * (index + 1);
        gpu->running = -1;
        gpu->time_ns = shared->created_ns;
        gpu->reset_ns = shared->created_ns;
        gpu->switch_ns = plan->pace.context_switch_ns;
        if (plan->overlap)
            gpu->orders_bytes = orders_offset(plan->gpu_count) +
                                (uint64_t)index * SIMGPU_CONTEXTS * sizeof(struct simgpu_orders) -
                                (uint64_t)((char *)gpu - (char *)shared);
    }
    memcpy(shared->magic, MAGIC, sizeof MAGIC);
}

int machine_create(const char *directory, const struct simgpu_plan *plan) {
    if (plan->gpu_count == 0 || plan->gpu_count > SIMGPU_GPUS || plan->scheduling > SIMGPU_TIMESLICE || plan->overlap > 1)
        return EINVAL;
    if (mkdir(directory, 0755) != 0 && errno != EEXIST)
        return errno;
    /* Before the file of locks is touched: closing it would drop what this very process may hold in it. */
    if (exists_in(directory, "machine"))
        return EEXIST;
    const uint64_t size = file_size(plan->gpu_count, plan->overlap);
    int locks = open_in(directory, "locks", O_RDWR | O_CREAT);
    if (locks < 0)
        return errno;
    int fd = open_in(directory, "machine", O_RDWR | O_CREAT | O_EXCL);
    int error = fd < 0 ? errno : 0;
    if (!error && ftruncate(fd, (off_t)size) != 0)
        error = errno;
    if (!error) {
        void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (memory == MAP_FAILED) {
            error = errno;
        } else {
            describe(memory, plan);
            munmap(memory, size);
        }
    }
    if (fd >= 0)
        close(fd);
    close(locks);
    return error;
}

enum machine_status machine_open(struct machine *machine, const char *directory) {
    *machine = (struct machine){.lock_fd = -1, .slot = -1};
    if (!directory)
        directory = getenv("SIMGPU_MACHINE");
    if (!directory || !*directory)
        directory = DEFAULT_DIRECTORY;
    int fd = open_in(directory, "machine", O_RDWR);
    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? MACHINE_MISSING : MACHINE_SYSTEM_ERROR;
    enum { HEAD = offsetof(struct simgpu_machine, pace) }; /* what follows takes a megabyte, and is not looked at here */
    struct simgpu_machine head;
    struct stat status;
    bool known = read(fd, &head, HEAD) == HEAD && fstat(fd, &status) == 0 && memcmp(head.magic, MAGIC, sizeof MAGIC) == 0 &&
                 head.version == SIMGPU_VERSION && head.gpu_count <= SIMGPU_GPUS && head.overlap <= 1 &&
                 head.size_bytes == file_size(head.gpu_count, head.overlap) && status.st_size == (off_t)head.size_bytes;
    void *memory = known ? mmap(NULL, head.size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    close(fd);
    if (!known)
        return MACHINE_WRONG_VERSION;
    if (memory == MAP_FAILED)
        return MACHINE_SYSTEM_ERROR;
    machine->lock_fd = open_in(directory, "locks", O_RDWR);
    if (machine->lock_fd < 0) {
        munmap(memory, head.size_bytes);
        return MACHINE_SYSTEM_ERROR;
    }
    machine->shared = memory;
    snprintf(opened, sizeof opened, "%s", directory);
    return MACHINE_OK;
}

void machine_note_misuse(const char *line, size_t length) {
    int fd = open_in(opened, "misuses", O_WRONLY | O_APPEND | O_CREAT);
    if (fd < 0)
        return;
    /* It goes to the end wherever it is said to go, whole. */
    (void)!pwrite(fd, line, length, 0);
    close(fd);
}

void machine_forked(struct machine *machine) {
    machine->holder = 0;
    machine->slot = -1;
}

static uint32_t index_of(const struct machine *machine, const struct simgpu_gpu *gpu) {
    return (uint32_t)(gpu - machine->shared->gpus);
}

/* The sum may be of before or after what the dead one was about to write. */
static void recount(struct machine *machine, struct simgpu_gpu *gpu) {
    uint64_t bytes = 0;
    for (uint32_t slot = 0; slot < load_u32(&machine->shared->slots); slot++)
        bytes += machine_detached_bytes(machine, index_of(machine, gpu), slot);
    store_u64(&gpu->detached_bytes, bytes);
}

void gpu_lock(struct machine *machine, struct simgpu_gpu *gpu) {
    if (word_lock(machine, &gpu->lock)) {
        engine_recover(gpu, machine->shared->processes, index_of(machine, gpu));
        recount(machine, gpu);
        gpu->recoveries++;
    }
}

void gpu_unlock(struct simgpu_gpu *gpu) { word_unlock(&gpu->lock); }

/* A GPU that nobody looked at for so long may hold the work of processes that died meanwhile: ask first. */
#define STALE_NS 1000000u

void machine_advance_and_lock(struct machine *machine, uint32_t index) {
    struct simgpu_gpu *gpu = &machine->shared->gpus[index];
    uint64_t now_ns = clock_now_ns();
    if (now_ns > load_u64(&gpu->time_ns) + STALE_NS)
        machine_reap(machine, now_ns);
    gpu_lock(machine, gpu);
    engine_advance(gpu, machine->shared->processes, index, machine->shared->scheduling, clock_now_ns());
}

void machine_advance(struct machine *machine, uint32_t index) {
    machine_advance_and_lock(machine, index);
    gpu_unlock(&machine->shared->gpus[index]);
}
