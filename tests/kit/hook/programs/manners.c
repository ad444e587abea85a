/* Programs that end, fork, are interrupted and are confined in ways that a guest must bear. argv[1] names one; it prints
 * "ok", or what went wrong. Without the hook each does the same. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "driver_api.h"
#include "hook_code.h"
#include "workload/spin.h"

#define MUST(condition)                                              \
    do {                                                             \
        if (!(condition)) {                                          \
            printf("line %d: %s is not so\n", __LINE__, #condition); \
            exit(1);                                                 \
        }                                                            \
    } while (0)
#define GOOD(call) MUST((call) == CUDA_SUCCESS)

extern char **environ;
static CUcontext context;
static CUfunction function;

static void start(void) {
    CUmodule module;

    GOOD(cuInit(0));
    GOOD(cuDevicePrimaryCtxRetain(&context, 0));
    GOOD(cuCtxSetCurrent(context));
    GOOD(cuModuleLoadData(&module, SPIN_PTX));
    GOOD(cuModuleGetFunction(&function, module, "spin"));
}

static CUresult launch(unsigned long long us) {
    unsigned long long ns = us * 1000;
    void *parameters[] = {&ns};

    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
}

/* A little of everything that the hook has to do with. */
static void work(void) {
    CUdeviceptr block;
    size_t free_bytes, total_bytes;

    for (int i = 0; i < 20; i++)
        GOOD(launch(50));
    GOOD(cuMemAlloc_v2(&block, 1 << 20));
    GOOD(cuMemsetD8_v2(block, 0, 1));
    GOOD(cuMemGetInfo_v2(&free_bytes, &total_bytes));
    GOOD(cuCtxSynchronize());
    GOOD(cuMemFree_v2(block));
}

static void in_thread(void *(*what)(void *), size_t stack_bytes) {
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    if (stack_bytes != 0)
        MUST(pthread_attr_setstacksize(&attributes, stack_bytes) == 0);
    MUST(pthread_create(&thread, &attributes, what, NULL) == 0);
    MUST(pthread_join(thread, NULL) == 0);
}

/* Until a line comes. */
static void wait_for_word(const char *what) {
    puts(what);
    (void)fflush(stdout);
    while (getchar() != '\n')
        ;
}

static int ended(pid_t child) {
    int status = -1;

    MUST(waitpid(child, &status, 0) == child);
    return status;
}

/* ---- other processes ---- */

static void plain(void) {
    start();
    work();
}

static void spawn(void) {
    char *const arguments[] = {"true", NULL};
    pid_t child;

    start();
    for (int i = 0; i < 5; i++) {
        GOOD(launch(100));
        MUST(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0);
        MUST(ended(child) == 0);
        GOOD(launch(100));
        child = vfork();
        if (child == 0) {
            execv("/bin/true", arguments);
            _exit(9);
        }
        MUST(ended(child) == 0);
    }
    work();
}

static volatile int over;

static void *keep_busy(void *nothing) {
    CUdeviceptr block;

    GOOD(cuCtxSetCurrent(context));
    while (!over) {
        GOOD(launch(20));
        GOOD(cuMemAlloc_v2(&block, 4096));
        GOOD(cuMemFree_v2(block));
    }
    return nothing;
}

/* Children forked at any moment of other threads' calls; they try what they may not, and end as programs end. */
static void fork_anywhen(void) {
    pthread_t threads[2];

    start();
    for (int i = 0; i < 2; i++)
        MUST(pthread_create(&threads[i], NULL, keep_busy, NULL) == 0);
    for (int i = 0; i < 40; i++) {
        const pid_t child = fork();

        MUST(child >= 0);
        if (child == 0) {
            CUdeviceptr block;
            size_t bytes;

            alarm(10);
            (void)launch(10);
            (void)cuMemGetInfo_v2(&bytes, &bytes);
            (void)cuMemAlloc_v2(&block, 1 << 20);
            (void)cuMemFree_v2(block);
            (void)cuStreamSynchronize(NULL);
            (void)cuCtxSynchronize();
            (void)cuDevicePrimaryCtxRelease_v2(0);
            (void)cuDevicePrimaryCtxRetain(&context, 0);
            (void)launch(10);
            exit(0);
        }
        MUST(ended(child) == 0);
    }
    over = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    work();
}

/* The worker is forked in a slice, and is still there when its parent has ended. */
static void leave_worker(void) {
    start();
    GOOD(launch(1000));
    if (fork() == 0) {
        (void)close(STDOUT_FILENO);
        (void)close(STDERR_FILENO);
        (void)alarm(20);
        (void)pause();
        _exit(0);
    }
    GOOD(launch(1000));
}

/* ---- rights, folders, descriptors, environment ---- */

static void other_user(void) {
    start();
    work();
    MUST(setgid(65534) == 0 && setuid(65534) == 0);
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    work();
}

static void other_root(void) {
    char folder[] = "/tmp/es-root-XXXXXX";

    start();
    work();
    MUST(mkdtemp(folder) != NULL && chroot(folder) == 0 && chdir("/") == 0);
    work();
}

/* All but those that the driver itself has opened, which are low. */
static void close_all(void) {
    start();
    work();
    for (int fd = 512; fd < 1024; fd++)
        (void)close(fd);
    work();
}

static void no_environment(void) {
    start();
    work();
    MUST(clearenv() == 0);
    wait_for_word("waiting");
    work();
}

/* No descriptor is left where CUDA begins; later there are some. */
static void full_table(void) {
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

static void sandbox(void) {
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

/* ---- signals ---- */

static void nothing_to_do(int number) { (void)number; }

static void storm(void) {
    const struct itimerval each_ms = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    const struct sigaction action = {.sa_handler = nothing_to_do};

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &each_ms, NULL);
    start();
    for (int i = 0; i < 20; i++)
        work();
    setitimer(ITIMER_REAL, &never, NULL);
}

static void storm_at_gate(void) {
    const struct itimerval each_ms = {{0, 1000}, {0, 1000}};
    const struct sigaction action = {.sa_handler = nothing_to_do};

    start();
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &each_ms, NULL);
    GOOD(launch(10));
}

static void launch_in_handler(int number) {
    (void)number;
    GOOD(launch(10));
    GOOD(cuCtxSynchronize());
}

static void *on_small_signal_stack(void *nothing) {
    static char place[16384];
    const stack_t stack = {.ss_sp = place, .ss_size = sizeof(place)};
    const struct sigaction action = {.sa_handler = launch_in_handler, .sa_flags = SA_ONSTACK};

    MUST(sigaltstack(&stack, NULL) == 0);
    GOOD(cuCtxSetCurrent(context));
    sigaction(SIGUSR1, &action, NULL);
    MUST(raise(SIGUSR1) == 0);
    return nothing;
}

static void *work_there(void *nothing) {
    GOOD(cuCtxSetCurrent(context));
    work();
    return nothing;
}

static void small_stacks(void) {
    start();
    /* Room for the thread-local data of all libraries, which stands on it too. */
    in_thread(work_there, PTHREAD_STACK_MIN + 16384);
    in_thread(on_small_signal_stack, 0);
    work();
}

#ifdef __x86_64__
enum { TRAP_FLAG = 0x100 };
static unsigned long steps;

/* Runs after each instruction, and calls CUDA wherever that one was the hook's own: the driver is not at work then. */
static void step(int number, siginfo_t *info, void *place) {
    const uintptr_t at = (uintptr_t)((ucontext_t *)place)->uc_mcontext.gregs[REG_RIP];
    CUdeviceptr block;
    size_t bytes;

    (void)number, (void)info;
    if (at < hook_begin || at >= hook_end)
        return;
    steps++;
    if (function == NULL) {
        (void)launch(1);
        (void)cuMemAlloc_v2(&block, 4096);
        (void)cuCtxSynchronize();
    } else if (steps % 7 == 0) {
        GOOD(launch(1));
    } else if (steps % 7 == 3) {
        GOOD(cuMemAlloc_v2(&block, 4096));
        GOOD(cuMemFree_v2(block));
    } else if (steps % 7 == 5) {
        GOOD(cuCtxSynchronize());
    } else {
        GOOD(cuMemGetInfo_v2(&bytes, &bytes));
    }
}

/* A handler that calls CUDA, at every instruction of the hook. */
static void at_each_step(void) {
    const struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    CUdeviceptr block;

    (void)dl_iterate_phdr(find_hook, NULL);
    sigaction(SIGTRAP, &action, NULL);
    __asm__ volatile("pushfq; orq %0, (%%rsp); popfq" ::"i"(TRAP_FLAG) : "memory", "cc");
    (void)cuInit(0);
    __asm__ volatile("pushfq; andq %0, (%%rsp); popfq" ::"i"(~TRAP_FLAG) : "memory", "cc");
    start();
    work();
    __asm__ volatile("pushfq; orq %0, (%%rsp); popfq" ::"i"(TRAP_FLAG) : "memory", "cc");
    (void)launch(10);
    (void)launch(10);
    (void)cuMemAlloc_v2(&block, 1 << 20);
    (void)cuMemFree_v2(block);
    (void)cuCtxSynchronize();
    __asm__ volatile("pushfq; andq %0, (%%rsp); popfq" ::"i"(~TRAP_FLAG) : "memory", "cc");
    work();
    MUST((getenv("LD_PRELOAD")[0] != '\0') == (steps > 500));
}
#endif

/* Each call leaves errno as the driver does, which is as it was. */
static void keep_errno(void) {
    CUdeviceptr block;
    CUevent event;
    size_t bytes;

#define KEPT(call)                                        \
    do {                                                  \
        errno = ENOTTY;                                   \
        GOOD(call);                                       \
        if (errno != ENOTTY)                              \
            printf("%s leaves errno %d\n", #call, errno); \
    } while (0)
    start();
    KEPT(launch(100));
    KEPT(launch(100));
    for (int i = 0; i < 30; i++)
        KEPT(launch(500));
    KEPT(cuMemAlloc_v2(&block, 1 << 20));
    KEPT(cuMemsetD8_v2(block, 0, 1));
    KEPT(cuMemGetInfo_v2(&bytes, &bytes));
    KEPT(cuMemFree_v2(block));
    KEPT(cuEventCreate(&event, 0));
    KEPT(cuEventRecord(event, NULL));
    KEPT(cuEventSynchronize(event));
    KEPT(cuStreamSynchronize(NULL));
    KEPT(cuStreamQuery(NULL));
    KEPT(cuCtxSynchronize());
    KEPT(cuDevicePrimaryCtxRetain(&context, 0));
    errno = ENOTTY;
    (void)dlsym(RTLD_DEFAULT, "cuLaunchKernel");
    MUST(errno == ENOTTY);
}

/* ---- threads ---- */

static void *launch_and_leave(void *nothing) {
    GOOD(cuCtxSetCurrent(context));
    for (int i = 0; i < 5; i++)
        GOOD(launch(200));
    return nothing;
}

static void launch_late(void *nothing) {
    (void)nothing;
    GOOD(launch(10));
    GOOD(cuCtxSynchronize());
}

static pthread_key_t key;

static void *with_late_launch(void *nothing) {
    GOOD(cuCtxSetCurrent(context));
    GOOD(launch(10));
    MUST(pthread_setspecific(key, &key) == 0);
    return nothing;
}

static void *until_cancelled(void *nothing) {
    CUdeviceptr block;

    GOOD(cuCtxSetCurrent(context));
    for (;;) {
        GOOD(launch(10));
        GOOD(cuMemAlloc_v2(&block, 1 << 20));
        GOOD(cuMemFree_v2(block));
        pthread_testcancel();
    }
    return nothing;
}

static pid_t fetching;

static void *fetch_slowly(void *nothing) {
    CUdeviceptr block;
    char byte;

    GOOD(cuCtxSetCurrent(context));
    GOOD(cuMemAlloc_v2(&block, 1));
    GOOD(launch(500000));
    __atomic_store_n(&fetching, gettid(), __ATOMIC_RELEASE);
    GOOD(cuMemcpyDtoH_v2(&byte, block, 1));
    return nothing;
}

/* Does the thread sleep in the driver? */
static int sleeps(pid_t thread) {
    char path[64];
    int number = -1;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)thread);
    file = fopen(path, "r");
    MUST(file != NULL);
    if (fscanf(file, "%d", &number) != 1)
        number = -1;
    (void)fclose(file);
    return number == SYS_clock_nanosleep;
}

/* A thread that ends while it waits within the driver for its result. */
static void cancelled_in_driver(void) {
    pthread_t thread;

    start();
    MUST(pthread_create(&thread, NULL, fetch_slowly, NULL) == 0);
    while (__atomic_load_n(&fetching, __ATOMIC_ACQUIRE) == 0 || !sleeps(fetching))
        ;
    MUST(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);
    wait_for_word("waiting");
}

static void left_batch(void) {
    start();
    in_thread(launch_and_leave, 0);
    wait_for_word("waiting");
}

static void leaving_threads(void) {
    start();
    MUST(pthread_key_create(&key, launch_late) == 0);
    for (int i = 0; i < 20; i++) {
        in_thread(launch_and_leave, 0);
        in_thread(with_late_launch, 0);
    }
    work();
}

static void cancelled_threads(void) {
    pthread_t thread;

    start();
    for (int i = 0; i < 60; i++) {
        MUST(pthread_create(&thread, NULL, until_cancelled, NULL) == 0);
        usleep((useconds_t)(i * 97 % 3000));
        MUST(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);
        GOOD(launch(10));
    }
    work();
}

/* ---- libraries and memory ---- */

static unsigned long from_hook;

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *place, size_t bytes);
extern void __libc_free(void *place);

static void note(const void *caller) { from_hook += (uintptr_t)caller >= hook_begin && (uintptr_t)caller < hook_end; }

void *malloc(size_t bytes) {
    note(__builtin_return_address(0));
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    note(__builtin_return_address(0));
    return __libc_calloc(count, bytes);
}

void *realloc(void *place, size_t bytes) {
    note(__builtin_return_address(0));
    return __libc_realloc(place, bytes);
}

void free(void *place) {
    note(__builtin_return_address(0));
    __libc_free(place);
}

/* A program's own malloc may itself take device memory: the hook must not call it while it has locks. */
static void own_malloc(void) {
    CUdeviceptr blocks[200];

    (void)dl_iterate_phdr(find_hook, NULL);
    start();
    for (int i = 0; i < 200; i++)
        GOOD(cuMemAlloc_v2(&blocks[i], 4096));
    work();
    for (int i = 0; i < 200; i++)
        GOOD(cuMemFree_v2(blocks[i]));
    MUST((hook_end != 0) == (getenv("LD_PRELOAD")[0] != '\0'));
    MUST(from_hook == 0);
}

/* ---- the end ---- */

static void at_the_end(void) {
    work();
    puts("ended well");
}

static void __attribute__((destructor)) after_the_end(void) {
    if (context != NULL)
        (void)launch(10);
}

static void work_at_exit(void) {
    start();
    MUST(atexit(at_the_end) == 0);
    GOOD(launch(100));
}

static const struct {
    const char *name;
    void (*run)(void);
} things[] = {
    {"plain", plain},
    {"spawn", spawn},
    {"fork_anywhen", fork_anywhen},
    {"leave_worker", leave_worker},
    {"other_user", other_user},
    {"other_root", other_root},
    {"close_all", close_all},
    {"no_environment", no_environment},
    {"full_table", full_table},
    {"sandbox", sandbox},
    {"storm", storm},
    {"small_stacks", small_stacks},
#ifdef __x86_64__
    {"at_each_step", at_each_step},
#endif
    {"storm_at_gate", storm_at_gate},
    {"cancelled_in_driver", cancelled_in_driver},
    {"left_batch", left_batch},
    {"own_malloc", own_malloc},
    {"keep_errno", keep_errno},
    {"leaving_threads", leaving_threads},
    {"cancelled_threads", cancelled_threads},
    {"work_at_exit", work_at_exit},
};

int main(int argc, char **argv) {
    for (size_t i = 0; argc == 2 && i < sizeof(things) / sizeof(things[0]); i++) {
        if (strcmp(argv[1], things[i].name) == 0) {
            things[i].run();
            puts("ok");
            return 0;
        }
    }
    fprintf(stderr, "manners: no such thing\n");
    return 2;
}
