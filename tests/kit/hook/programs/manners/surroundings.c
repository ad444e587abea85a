#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "manners.h"

void other_user(void) {
    start();
    work();
    MUST(setgid(65534) == 0 && setuid(65534) == 0);
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    work();
}

void other_root(void) {
    char folder[] = "/tmp/es-root-XXXXXX";

    start();
    work();
    MUST(mkdtemp(folder) != NULL && chroot(folder) == 0 && chdir("/") == 0);
    work();
}

/* All but those that the driver itself has opened, which are low. */
void close_all(void) {
    start();
    work();
    for (int fd = 512; fd < 1024; fd++)
        (void)close(fd);
    work();
}

void no_environment(void) {
    start();
    work();
    MUST(clearenv() == 0);
    wait_for_word("waiting");
    work();
}

/* No descriptor is left where CUDA begins; later there are some. */
void full_table(void) {
    const struct rlimit limit = {64, 64};
    int fds[64], count = 0;

    MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    while ((fds[count] = open("/dev/null", O_RDONLY)) >= 0)
        count++;
    MUST(errno == EMFILE);
    (void)cuInit(0);
    while (count > 0)
        (void)close(fds[--count]);
    start();
    work();
}

/* A filter of system calls that lets nobody connect: there may be a manager or not. */
void no_sockets(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    start();
    work();
}

/* No thread can be made: RLIMIT_NPROC, a control group's pids.max. */
void no_threads(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    start();
    work();
    wait_for_word("waiting");
    work();
}

/* The folder of the allocation is one that it may not enter. */
void shut_out(void) {
    MUST(setgid(65534) == 0 && setuid(65534) == 0);
    start();
    work();
}

void sandbox(void) {
#define REFUSE(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(SYS_membarrier),
        REFUSE(SYS_madvise),
        REFUSE(SYS_faccessat),
        REFUSE(SYS_prctl),
        REFUSE(SYS_tgkill),
        REFUSE(SYS_sched_yield),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
    pid_t child;

    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    child = fork();
    if (child == 0) {
        start();
        work();
        exit(0);
    }
    MUST(ended(child) == 0);
    start();
    work();
    child = fork();
    if (child == 0) {
        (void)launch(10);
        exit(0);
    }
    MUST(ended(child) == 0);
    work();
}
