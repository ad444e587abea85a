/* Locks of files. Record locks belong to simulated processes; those of open file descriptions are the kernel's own, of
 * which simulated processes have different ones anyway. Whoever waits looks again after each that ends. */
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "machine.h"

enum { RECORDS = 8192 };

struct record {
    uint64_t file;
    int64_t from, to; /* the first byte behind it */
    int process;
    short type;
};

static struct record records[RECORDS];
static int record_count;

static const struct key ANY_LOCK = {0, K_LOCK};

static bool file_of(int fd, uint64_t *file, struct stat *status) {
    if (raw(SYS_fstat, fd, (long)status, 0, 0, 0, 0) != 0)
        return false;
    *file = (uint64_t)status->st_dev << 48 ^ status->st_ino;
    return true;
}

/* The bytes that a caller means; false where there is no such file. */
static bool bytes_of(int fd, const struct flock *lock, struct record *wanted) {
    struct stat status;
    int64_t base = 0;

    if (!file_of(fd, &wanted->file, &status))
        return false;
    if (lock->l_whence == SEEK_CUR)
        base = raw(SYS_lseek, fd, 0, SEEK_CUR, 0, 0, 0);
    else if (lock->l_whence == SEEK_END)
        base = status.st_size;
    wanted->from = base + lock->l_start;
    wanted->to = lock->l_len == 0 ? INT64_MAX : wanted->from + lock->l_len;
    if (lock->l_len < 0) {
        wanted->to = wanted->from;
        wanted->from += lock->l_len;
    }
    wanted->type = lock->l_type;
    wanted->process = self->process;
    return true;
}

static bool overlap(const struct record *one, const struct record *other) {
    return one->file == other->file && one->from < other->to && other->from < one->to;
}

/* A record in its way; `own`: its process's own ones, too, as open file descriptions see them. */
static const struct record *conflict(const struct record *wanted, bool own) {
    for (int i = 0; i < record_count; i++)
        if (overlap(&records[i], wanted) && (own || records[i].process != wanted->process) &&
            (records[i].type == F_WRLCK || wanted->type == F_WRLCK))
            return &records[i];
    return NULL;
}

static void add(struct record record) {
    if (record_count == RECORDS)
        die(VT_IMPOSSIBLE, "more record locks than there is room for");
    records[record_count++] = record;
}

/* What a process asks for replaces what it had of the same bytes. */
static void replace(const struct record *wanted) {
    for (int i = record_count - 1; i >= 0; i--) {
        const struct record old = records[i];

        if (old.process != wanted->process || !overlap(&old, wanted))
            continue;
        records[i] = records[--record_count];
        if (old.from < wanted->from)
            add((struct record){old.file, old.from, wanted->from, old.process, old.type});
        if (old.to > wanted->to)
            add((struct record){old.file, wanted->to, old.to, old.process, old.type});
    }
    if (wanted->type != F_UNLCK)
        add(*wanted);
    (void)wake(ANY_LOCK, ~0u, INT_MAX);
}

static long tell(const struct record *found, struct flock *lock) {
    lock->l_type = found->type;
    lock->l_whence = SEEK_SET;
    lock->l_start = found->from;
    lock->l_len = found->to == INT64_MAX ? 0 : found->to - found->from;
    lock->l_pid = FIRST_PID + found->process;
    return 0;
}

/* Does an open file description hold one in its way? The kernel knows those. */
static bool kernel_conflict(int fd, const struct flock *lock) {
    struct flock asked = *lock;

    return asked.l_type != F_UNLCK && raw(SYS_fcntl, fd, F_GETLK, (long)&asked, 0, 0, 0) == 0 && asked.l_type != F_UNLCK;
}

/* -EAGAIN: not now. */
static long try(int fd, int command, struct flock *lock) {
    const bool of_description = command == F_OFD_SETLK || command == F_OFD_SETLKW;
    struct record wanted;
    long result;

    if (!bytes_of(fd, lock, &wanted))
        return -EBADF;
    if (wanted.type != F_UNLCK && conflict(&wanted, of_description) != NULL)
        return -EAGAIN;
    if (of_description) {
        result = raw(SYS_fcntl, fd, F_OFD_SETLK, (long)lock, 0, 0, 0);
        if (result == 0)
            (void)wake(ANY_LOCK, ~0u, INT_MAX);
        return result;
    }
    if (kernel_conflict(fd, lock))
        return -EAGAIN;
    replace(&wanted);
    return 0;
}

static long query(int fd, int command, struct flock *lock) {
    struct record wanted;
    const struct record *found;

    if (!bytes_of(fd, lock, &wanted))
        return -EBADF;
    found = conflict(&wanted, command == F_OFD_GETLK);
    if (found != NULL)
        return tell(found, lock);
    return raw(SYS_fcntl, fd, command, (long)lock, 0, 0, 0);
}

bool is_lock(int command) {
    return command == F_GETLK || command == F_SETLK || command == F_SETLKW || command == F_OFD_GETLK || command == F_OFD_SETLK ||
           command == F_OFD_SETLKW;
}

/* As the kernel's fcntl. */
long lock(int fd, int command, void *argument) {
    long result;

    point(P_IO, config.costs.io_ns);
    if (self->ghost)
        return -ENOLCK;
    if (command == F_GETLK || command == F_OFD_GETLK)
        return query(fd, command, argument);
    while ((result = try(fd, command, argument)) == -EAGAIN && (command == F_SETLKW || command == F_OFD_SETLKW)) {
        if (block(ANY_LOCK, ~0u, NEVER) == ECANCELED)
            return -ENOLCK;
    }
    return result;
}

int flock(int fd, int operation) {
    long result;

    if (!SIMULATED())
        return (int)answer(raw(SYS_flock, fd, operation, 0, 0, 0, 0));
    point(P_IO, config.costs.io_ns);
    if (self->ghost)
        return fail(ENOLCK);
    while ((result = raw(SYS_flock, fd, operation | LOCK_NB, 0, 0, 0, 0)) == -EAGAIN && (operation & LOCK_NB) == 0)
        if (block(ANY_LOCK, ~0u, NEVER) == ECANCELED)
            return fail(ENOLCK);
    if (result == 0)
        (void)wake(ANY_LOCK, ~0u, INT_MAX);
    return (int)answer(result);
}

static void drop(int process, bool any, uint64_t file) {
    for (int i = record_count - 1; i >= 0; i--)
        if (records[i].process == process && (any || records[i].file == file))
            records[i] = records[--record_count];
}

/* A process that closes any descriptor of a file loses its record locks of that file; so the kernel has it. */
void locks_closed(int fd) {
    struct stat status;
    uint64_t file;

    if (record_count != 0 && file_of(fd, &file, &status))
        drop(self->process, false, file);
    if (awaited(ANY_LOCK, ~0u))
        (void)wake(ANY_LOCK, ~0u, INT_MAX); /* its description's, too, once it is closed: in this same step */
}

void locks_end(int process) {
    drop(process, true, 0);
    if (self != NULL)
        (void)wake(ANY_LOCK, ~0u, INT_MAX);
}
