/* Memory that simulated processes share: which word of which file an address is, and what a process that was killed
 * keeps of it. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "machine.h"

enum { MAPPINGS = 4096 };

struct mapping {
    uintptr_t from, to;
    uint64_t file, offset;
    int process;
};

static struct mapping mappings[MAPPINGS]; /* by address */
static int mapping_count;

/* The first that ends above it. */
static int first_above(uintptr_t address) {
    int low = 0, high = mapping_count;

    while (low < high) {
        const int middle = (low + high) / 2;

        if (mappings[middle].to <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(int at, struct mapping mapping) {
    if (mapping_count == MAPPINGS)
        die(VT_IMPOSSIBLE, "more shared mappings than there is room for");
    memmove(&mappings[at + 1], &mappings[at], (size_t)(mapping_count - at) * sizeof(mapping));
    mappings[at] = mapping;
    mapping_count++;
}

static void drop(int at) {
    mapping_count--;
    memmove(&mappings[at], &mappings[at + 1], (size_t)(mapping_count - at) * sizeof(mappings[0]));
}

/* What is mapped over, or unmapped; of a mapping that it lies within two parts remain. */
static void forget(uintptr_t from, uintptr_t to) {
    int at = first_above(from);

    while (at < mapping_count && mappings[at].from < to) {
        struct mapping rest = mappings[at];

        drop(at);
        if (rest.from < from) {
            insert(at, (struct mapping){rest.from, from, rest.file, rest.offset, rest.process});
            at++;
        }
        if (rest.to > to) {
            insert(at, (struct mapping){to, rest.to, rest.file, rest.offset + (to - rest.from), rest.process});
            at++;
        }
    }
}

static void remember(uintptr_t from, size_t size, int fd, uint64_t offset) {
    struct stat status;

    if (raw(SYS_fstat, fd, (long)&status, 0, 0, 0, 0) == 0)
        insert(first_above(from),
               (struct mapping){from, from + size, (uint64_t)status.st_dev << 48 ^ status.st_ino, offset, self->process});
}

struct key key_of(const void *word, bool private, uint64_t kind) {
    const uintptr_t address = (uintptr_t)word;
    const int at = private ? mapping_count : first_above(address);

    if (at < mapping_count && mappings[at].from <= address)
        return (struct key){mappings[at].offset + (address - mappings[at].from), mappings[at].file * K_FILE + kind};
    return (struct key){address, kind};
}

/* What a ghost maps nobody shares. */
void *map(void *at, size_t size, int protection, int flags, int fd, long offset) {
    long result;

    if (self->ghost && (flags & MAP_TYPE) != MAP_PRIVATE)
        flags = (flags & ~MAP_TYPE) | MAP_PRIVATE;
    result = answer(raw(SYS_mmap, (long)at, (long)size, protection, flags, fd, offset));
    if (result != -1) {
        forget((uintptr_t)result, (uintptr_t)result + size);
        if ((flags & MAP_TYPE) != MAP_PRIVATE && fd >= 0)
            remember((uintptr_t)result, size, fd, (uint64_t)offset);
    }
    return (void *)result;
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    if (!SIMULATED())
        return (void *)answer(raw(SYS_mmap, (long)at, (long)size, protection, flags, fd, offset));
    return map(at, size, protection, flags, fd, offset);
}

void *mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset) __attribute__((alias("mmap")));

int munmap(void *at, size_t size) {
    if (SIMULATED())
        forget((uintptr_t)at, (uintptr_t)at + size);
    return (int)answer(raw(SYS_munmap, (long)at, (long)size, 0, 0, 0, 0));
}

/* Copies what is in memory, and leaves holes where nothing was ever written, however large they are. The kernel does
 * the reading, since some of it may lie behind the file's end. */
static void copy_pages(int fd, uintptr_t from, size_t size) {
    enum { PAGE = 4096, PAGES = 256 };

    for (size_t done = 0; done < size; done += (size_t)PAGE * PAGES) {
        const size_t part = size - done < (size_t)PAGE * PAGES ? size - done : (size_t)PAGE * PAGES;
        unsigned char present[PAGES] = {0};

        (void)raw(SYS_mincore, (long)(from + done), (long)part, (long)present, 0, 0, 0);
        if (memchr(present, 1, sizeof(present)) != NULL)
            (void)raw(SYS_pwrite64, fd, (long)(from + done), (long)part, (long)done, 0, 0);
    }
}

static void make_private(uintptr_t from, uintptr_t to, int protection) {
    const size_t size = to - from;
    const long fd = raw(SYS_memfd_create, (long)"private", MFD_CLOEXEC, 0, 0, 0, 0);

    if (fd < 0 || raw(SYS_ftruncate, fd, (long)size, 0, 0, 0, 0) != 0)
        die(VT_IMPOSSIBLE, "no memory for what a dead process shared");
    copy_pages((int)fd, from, size);
    (void)raw(SYS_mmap, (long)from, (long)size, protection, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd, 0);
    (void)raw(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* How it is mapped only the kernel knows: it may have been protected since. */
static void make_private_within(const struct mapping *mapping) {
    FILE *lines = REAL(fopen)("/proc/self/maps", "re");
    char line[512], permissions[5];
    unsigned long from, to;

    if (lines == NULL)
        die(VT_IMPOSSIBLE, "/proc/self/maps cannot be read");
    while (fgets(line, sizeof(line), lines) != NULL) {
        if (sscanf(line, "%lx-%lx %4s", &from, &to, permissions) != 3 || permissions[3] != 's')
            continue;
        from = from > mapping->from ? from : mapping->from;
        to = to < mapping->to ? to : (mapping->to + 4095) & ~4095ul;
        if (from < to)
            make_private(from, to,
                         (permissions[0] == 'r' ? PROT_READ : 0) | (permissions[1] == 'w' ? PROT_WRITE : 0) |
                             (permissions[2] == 'x' ? PROT_EXEC : 0));
    }
    (void)fclose(lines);
}

void memory_end(int process) {
    for (int at = 0; at < mapping_count;) {
        if (mappings[at].process != process) {
            at++;
            continue;
        }
        make_private_within(&mappings[at]);
        drop(at);
    }
}
