/* Pids are those of simulated processes: what is asked of one, or done to one, never reaches a real process that
 * happens to have that number. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "machine.h"

int vt_pid(int process) { return FIRST_PID + process; }

int process_by_pid(long pid) {
    const long process = pid - FIRST_PID;

    return process < 0 || process >= process_count || processes[process].dead ? -1 : (int)process;
}

pid_t getpid(void) { return self == NULL ? (pid_t)raw(SYS_getpid, 0, 0, 0, 0, 0, 0) : FIRST_PID + self->process; }

pid_t gettid(void) { return self == NULL ? (pid_t)raw(SYS_gettid, 0, 0, 0, 0, 0, 0) : (pid_t)self->tid; }

/* No simulated process has handlers: a signal stops, continues or kills it, or does nothing. */
long send_signal(long pid, int signal) {
    const int process = process_by_pid(pid);

    if (process < 0)
        return -ESRCH;
    if (signal == 0)
        return 0;
    if (self->ghost)
        return -EPERM;
    if (signal == SIGKILL || signal == SIGTERM || signal == SIGINT)
        vt_kill(process);
    else if (signal == SIGSTOP)
        vt_stop(process);
    else if (signal == SIGCONT)
        vt_continue(process);
    return 0;
}

int kill(pid_t pid, int signal) {
    if (!SIMULATED())
        return (int)answer(raw(SYS_kill, pid, signal, 0, 0, 0, 0));
    return (int)answer(send_signal(pid, signal));
}

/* A duplicate of a descriptor that becomes readable when the process dies, and stays so. */
long pidfd(long pid) {
    enum { NONBLOCK_CLOEXEC = 04000 | 02000000, F_DUPFD_CLOEXEC_ = 1030 };
    const int process = process_by_pid(pid);

    if (process < 0)
        return -ESRCH;
    if (processes[process].end_fd == 0)
        processes[process].end_fd = (int)raw(SYS_eventfd2, 0, NONBLOCK_CLOEXEC, 0, 0, 0, 0);
    return own(raw(SYS_fcntl, processes[process].end_fd, F_DUPFD_CLOEXEC_, 0, 0, 0, 0));
}

int pidfd_open(pid_t pid, unsigned flags) {
    if (!SIMULATED())
        return (int)answer(raw(SYS_pidfd_open, pid, flags, 0, 0, 0, 0));
    return (int)answer(pidfd(pid));
}

/* A line as proc_pid_stat(5) has it: of what programs look at it holds the pid, the name, the state and, in field 22,
 * when the process began. */
static long stat_file(int process) {
    char line[256];
    const long fd = raw(SYS_memfd_create, (long)"stat", MFD_CLOEXEC, 0, 0, 0, 0);
    const int pid = FIRST_PID + process;
    const int length = snprintf(line, sizeof(line),
                                "%d (%s) %c 1 %d %d 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0 0 0 0 0 0 0 0 0 0 "
                                "0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
                                pid, processes[process].name, processes[process].stopped ? 'T' : 'S', pid, pid, 100 + process);

    if (fd >= 0)
        (void)raw(SYS_pwrite64, fd, (long)line, length, 0, 0, 0);
    return fd;
}

/* -1: not a path of a simulated process; else as the kernel's open. */
long proc_file(const char *path) {
    int pid, length = 0;

    if (path == NULL || strncmp(path, "/proc/", 6) != 0 || sscanf(path, "/proc/%d/%n", &pid, &length) != 1 || length == 0 ||
        pid < FIRST_PID || pid >= FIRST_PID + PROCESSES)
        return -1;
    if (process_by_pid(pid) < 0 || strcmp(path + length, "stat") != 0)
        return -ENOENT;
    return stat_file(process_by_pid(pid));
}
