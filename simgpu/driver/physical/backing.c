/* Device memory lies in one file of the process, in memory, so that another process can be led to a part of it. Pages
 * come to be when they are first touched; a place is used once. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver/base/sizes.h"
#include "driver/physical/backing.h"

#define FILE_SIZE ((off_t)1 << 60)

static struct {
    pthread_mutex_t lock;
    int fd;
    uint64_t used; /* bytes from the start; 0: no file yet */
} file = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* With the lock. */
static bool open_file(void) {
    if (file.used)
        return true;
    /* Not every C library that this is built for has memfd_create. */
    int fd = (int)syscall(SYS_memfd_create, "simgpu", 1u /* MFD_CLOEXEC */);
    if (fd < 0)
        return false;
    if (ftruncate(fd, FILE_SIZE) != 0) {
        close(fd);
        return false;
    }
    __atomic_store_n(&file.fd, fd, __ATOMIC_RELEASE);
    file.used = PAGE;
    return true;
}

int backing_file(void) { return __atomic_load_n(&file.fd, __ATOMIC_ACQUIRE); }

uint64_t backing_take(size_t size) {
    uint64_t offset = 0;
    pthread_mutex_lock(&file.lock);
    if (open_file() && round_up(size, PAGE) <= (uint64_t)FILE_SIZE - file.used) {
        offset = file.used;
        file.used += round_up(size, PAGE);
    }
    pthread_mutex_unlock(&file.lock);
    return offset;
}

void backing_give(int fd, uint64_t offset, size_t size) {
    const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    fallocate(fd < 0 ? backing_file() : fd, mode, (off_t)offset, (off_t)round_up(size, PAGE));
}

uintptr_t backing_map(int fd, uint64_t offset, size_t size, uintptr_t at, bool usable) {
    int protection = usable ? PROT_READ | PROT_WRITE : PROT_NONE;
    int flags = MAP_SHARED | MAP_NORESERVE | (at ? MAP_FIXED : 0);
    void *made = mmap((void *)at, size, protection, flags, fd < 0 ? backing_file() : fd, (off_t)offset);
    return made == MAP_FAILED ? 0 : (uintptr_t)made;
}

/* Where to look, and how far apart. */
#define LOW_BEGIN ((uintptr_t)256 << 20)
#define LOW_END ((uintptr_t)1 << 32)
#define LOW_STEP ((uintptr_t)2 << 20)

uintptr_t backing_map_low(uint64_t offset, size_t size) {
    for (uintptr_t at = LOW_BEGIN; at < LOW_END && size <= LOW_END - at; at += LOW_STEP) {
        /* A wish: what is there stays there. */
        void *made = mmap((void *)at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, backing_file(), (off_t)offset);
        if (made == (void *)at)
            return at;
        if (made != MAP_FAILED)
            munmap(made, size);
    }
    return 0;
}

bool backing_read(int fd, uint64_t offset, void *data, size_t size) {
    return pread(fd < 0 ? backing_file() : fd, data, size, (off_t)offset) == (ssize_t)size;
}

bool backing_write(uint64_t offset, const void *data, size_t size) {
    return pwrite(backing_file(), data, size, (off_t)offset) == (ssize_t)size;
}

int backing_export(int fd, uint64_t offset) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd < 0 ? backing_file() : fd);
    /* Opened anew, not duplicated: only so has it a position of its own. */
    int made = open(path, O_RDWR | O_CLOEXEC);
    if (made >= 0 && lseek(made, (off_t)offset, SEEK_SET) != (off_t)offset) {
        close(made);
        made = -1;
    }
    return made;
}

uint64_t backing_place(int fd) {
    off_t place = lseek(fd, 0, SEEK_CUR);
    return place > 0 ? (uint64_t)place : 0;
}
