/* Locks and slots, between real processes. argv: the property, an empty directory. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine/engine/engine.h"
#include "machine/engine/steps.h"
#include "machine/lock.h"
#include "property.h"

static const char *directory;

static struct machine open_machine(void) {
    struct machine machine;
    REQUIRE(machine_open(&machine, directory) == MACHINE_OK);
    return machine;
}

/* Starts a process with the machine open, which holds the first GPU's lock once this returns. */
static pid_t holder(void) {
    int ready[2];
    char byte;
    REQUIRE(pipe(ready) == 0);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        struct machine machine = open_machine();
        gpu_lock(&machine, &machine.shared->gpus[0]);
        REQUIRE(write(ready[1], "x", 1) == 1);
        for (;;)
            pause();
    }
    REQUIRE(read(ready[0], &byte, 1) == 1);
    return pid;
}

static void end(pid_t pid) {
    int status;
    REQUIRE(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
}

static void a_dead_holders_lock_is_taken_over(void) {
    struct machine machine = open_machine();
    struct simgpu_gpu *gpu = &machine.shared->gpus[0];
    pid_t pid = holder();
    REQUIRE(gpu->lock != 0);
    end(pid);
    machine_advance(&machine, 0);
    REQUIRE(gpu->recoveries == 1 && gpu->lock == 0);
    machine_advance(&machine, 0);
    REQUIRE(gpu->recoveries == 1);
}

static void a_living_holders_lock_is_waited_for(void) {
    struct machine machine = open_machine();
    pid_t pid = holder(), waiter = fork();
    int status;
    REQUIRE(waiter >= 0);
    if (waiter == 0) {
        struct machine own = open_machine();
        machine_advance(&own, 0);
        _exit(0);
    }
    /* Many times as long as a waiter sleeps before it asks whether the holder lives. */
    usleep(50000);
    REQUIRE(waitpid(waiter, &status, WNOHANG) == 0);
    REQUIRE(machine.shared->gpus[0].recoveries == 0);
    end(pid);
    REQUIRE(waitpid(waiter, &status, 0) == waiter && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    REQUIRE(machine.shared->gpus[0].recoveries == 1);
}

static void what_a_dead_holder_had_written_down_is_done(void) {
    struct machine machine = open_machine();
    struct simgpu_gpu *gpu = &machine.shared->gpus[0];
    gpu->step = (struct simgpu_step){.context = -1, .running = -1, .time_ns = gpu->time_ns + 5, .busy_ns = 77};
    gpu->step.valid = 1;
    end(holder());
    gpu_lock(&machine, gpu);
    REQUIRE(gpu->busy_ns == 77 && gpu->step.valid == 0);
    gpu_unlock(gpu);
}

static void what_a_dead_holder_was_writing_down_is_not_done(void) {
    struct machine machine = open_machine();
    struct simgpu_gpu *gpu = &machine.shared->gpus[0];
    uint64_t time_ns = gpu->time_ns;
    gpu_lock(&machine, gpu);
    struct simgpu_step *step = step_unchanged(gpu, machine.shared->processes, 0, -1);
    gpu_unlock(gpu);
    step->time_ns += 5;
    step->busy_ns = 77;
    end(holder());
    gpu_lock(&machine, gpu);
    REQUIRE(gpu->recoveries == 1 && gpu->time_ns == time_ns && gpu->busy_ns == 0);
    gpu_unlock(gpu);
}

static void the_longest_dead_gives_its_slot_when_none_is_free(void) {
    struct machine machine = open_machine();
    for (uint32_t slot = 0; slot < SIMGPU_PROCESSES; slot++) {
        machine.shared->processes[slot].state = SIMGPU_PROCESS_DEAD;
        machine.shared->processes[slot].end_ns = 1000 + (slot * 7919) % SIMGPU_PROCESSES;
    }
    machine.shared->slots = SIMGPU_PROCESSES;
    machine.shared->processes[600].end_ns = 1;
    REQUIRE(machine_join(&machine) == MACHINE_OK);
    REQUIRE(machine.slot == 600);
    REQUIRE(machine.shared->processes[600].state == SIMGPU_PROCESS_LIVE);
}

static void a_process_is_alive_to_itself_and_others_until_it_ends(void) {
    int slot_pipe[2];
    int32_t slot, pid;
    struct machine machine = open_machine();
    REQUIRE(machine_join(&machine) == MACHINE_OK);
    REQUIRE(machine_alive(&machine, (uint32_t)machine.slot, &pid) && pid == getpid());
    REQUIRE(pipe(slot_pipe) == 0);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        struct machine own = open_machine();
        REQUIRE(machine_join(&own) == MACHINE_OK);
        REQUIRE(write(slot_pipe[1], &own.slot, sizeof own.slot) == sizeof own.slot);
        for (;;)
            pause();
    }
    REQUIRE(read(slot_pipe[0], &slot, sizeof slot) == sizeof slot);
    REQUIRE(slot != machine.slot);
    REQUIRE(machine_alive(&machine, (uint32_t)slot, &pid) && pid == child);
    end(child);
    REQUIRE(!machine_alive(&machine, (uint32_t)slot, &pid) && pid == 0);
    machine_reap_now(&machine);
    REQUIRE(machine.shared->processes[slot].state == SIMGPU_PROCESS_DEAD);
    REQUIRE(machine.shared->processes[machine.slot].state == SIMGPU_PROCESS_LIVE);
}

static void a_machine_is_made_once_and_only_opened_whole(void) {
    struct simgpu_plan plan = {.gpu_count = 1};
    struct machine machine;
    char path[4096];
    REQUIRE(machine_create(directory, &plan) == 17);
    plan.gpu_count = 0;
    REQUIRE(machine_create("/dev/shm/never-made", &plan) == 22);
    REQUIRE(machine_open(&machine, "/dev/shm/never-made") == MACHINE_MISSING);
    snprintf(path, sizeof path, "%s/machine", directory);
    REQUIRE(truncate(path, 100000) == 0);
    REQUIRE(machine_open(&machine, directory) == MACHINE_WRONG_VERSION);
}

static const struct property TESTS[] = {
    TEST(a_dead_holders_lock_is_taken_over),
    TEST(a_living_holders_lock_is_waited_for),
    TEST(what_a_dead_holder_had_written_down_is_done),
    TEST(what_a_dead_holder_was_writing_down_is_not_done),
    TEST(the_longest_dead_gives_its_slot_when_none_is_free),
    TEST(a_process_is_alive_to_itself_and_others_until_it_ends),
    TEST(a_machine_is_made_once_and_only_opened_whole),
};

int main(int argc, char **argv) {
    const struct property *property = argc == 3 ? property_named(TESTS, sizeof TESTS / sizeof *TESTS, argv[1]) : NULL;
    if (!property)
        return 2;
    struct simgpu_plan plan = {.gpu_count = 1, .cuda_version = 12040};
    plan.models[0].memory_bytes = 1 << 30;
    directory = argv[2];
    REQUIRE(machine_create(directory, &plan) == 0);
    property->run();
    return 0;
}
