/* Simulated processes: what they see of themselves, and what happens to them. */
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "machine.h"

struct process processes[PROCESSES];
int process_count;

static struct process *process_of(int process) {
    if (process < 0 || process >= process_count)
        die(VT_IMPOSSIBLE, "a process that was never made");
    return &processes[process];
}

int vt_process(const char *name, const char *folder, uint32_t scale) {
    struct process *process = &processes[process_count];

    if (process_count == PROCESSES)
        die(VT_IMPOSSIBLE, "more processes than there is room for");
    (void)snprintf(process->name, sizeof(process->name), "%s", name);
    process->folder = folder == NULL ? NULL : strdup(folder);
    process->scale = scale;
    return process_count++;
}

void vt_env(int process, const char *name, const char *value) {
    struct variable *variable = malloc(sizeof(*variable));

    if (variable == NULL)
        die(VT_IMPOSSIBLE, "no memory");
    *variable = (struct variable){strdup(name), strdup(value), process_of(process)->variables};
    process_of(process)->variables = variable;
}

char *getenv(const char *name) {
    struct variable *variable = self == NULL ? NULL : processes[self->process].variables;

    for (; variable != NULL; variable = variable->next)
        if (strcmp(variable->name, name) == 0)
            return variable->value;
    return REAL(getenv)(name);
}

char *secure_getenv(const char *name) { return getenv(name); }

static void process_changed(int process) {
    for (int i = 0; i < thread_count; i++)
        if (threads[i].process == process)
            due_changed(&threads[i]);
    choose_anew();
}

/* The thread that the real process needs goes on as a ghost, at once where it waits. */
static void make_ghost(struct thread *thread) {
    thread->ghost = true;
    thread->closed = 0;
    if (thread != self)
        wake_thread(thread, ECANCELED, vt_now());
}

void vt_kill(int process) {
    const uint64_t one = 1;

    if (process_of(process)->dead)
        return;
    processes[process].dead = true;
    memory_end(process);
    descriptors_end(process);
    locks_end(process);
    for (int i = 0; i < thread_count; i++)
        if (threads[i].process == process && threads[i].entered && threads[i].state != ENDED)
            make_ghost(&threads[i]);
    if (processes[process].end_fd > 0)
        (void)raw(SYS_write, processes[process].end_fd, (long)&one, sizeof(one), 0, 0, 0);
    process_changed(process);
    if (self == NULL)
        return;
    descriptors_changed();
    if (self->process == process && !self->ghost)
        pass(); /* and never comes back */
}

void vt_stop(int process) {
    if (process_of(process)->dead)
        return;
    processes[process].stopped = true;
    process_changed(process);
    if (self != NULL && self->process == process && self->closed == 0)
        pass();
}

void process_continues(int process, uint64_t at) {
    processes[process].stopped = false;
    for (int i = 0; i < thread_count; i++)
        if (threads[i].process == process && threads[i].t < at)
            threads[i].t = at;
    process_changed(process);
}

void vt_continue(int process) {
    if (!process_of(process)->stopped)
        return;
    process_continues(process, vt_now());
    if (self != NULL)
        descriptors_changed(); /* it looks at what came meanwhile */
}

void vt_at(int process, uint64_t number, enum vt_action action, uint64_t for_ns) {
    struct process *chosen = process_of(process);

    chosen->act_at = number;
    chosen->act = action;
    chosen->act_for_ns = for_ns;
}

/* Not within the loader, whose lock would stay taken: at the first point after it. */
void process_acts(int process) {
    if (self->closed != 0) {
        processes[process].act_at++;
        return;
    }
    if (processes[process].act == VT_KILL) {
        vt_kill(process);
        return;
    }
    timers_continue(process, after(processes[process].act_for_ns));
    vt_stop(process);
}

uint64_t vt_points_of(int process) { return process_of(process)->points; }

struct filter {
    int (*visit)(struct dl_phdr_info *, size_t, void *);
    void *data;
};

static bool is_under(const char *path, const char *folder) {
    const size_t length = strlen(folder);

    return strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* A process sees the libraries of its own folder, and those of nobody's. */
static int visit_own(struct dl_phdr_info *info, size_t size, void *data) {
    const struct filter *filter = data;

    for (int i = 0; i < process_count; i++)
        if (i != self->process && processes[i].folder != NULL && info->dlpi_name != NULL &&
            is_under(info->dlpi_name, processes[i].folder))
            return 0;
    return filter->visit(info, size, filter->data);
}

/* The loader holds a lock while it visits and while it loads, which no other thread must find taken. */
int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data) {
    struct filter filter = {visit, data};
    int result;

    if (!SIMULATED())
        return REAL(dl_iterate_phdr)(visit, data);
    self->closed++;
    result = REAL(dl_iterate_phdr)(visit_own, &filter);
    self->closed--;
    return result;
}

void *dlopen(const char *path, int mode) {
    void *library;

    if (!SIMULATED())
        return REAL(dlopen)(path, mode);
    self->closed++;
    library = REAL(dlopen)(path, mode);
    self->closed--;
    return library;
}
