#include "client.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define DRIVER "libcuda.so.1"
#define HOOK "libedgeshare_cuda.so"

/* The same kernel under many names: its parameter says how long it takes. */
#define HEAD ".version 6.0\n.target sm_50\n.address_size 64\n"
#define ENTRY ".visible .entry k%u(.param .u64 length)\n{\n    // simgpu: duration_ns = param 0\n    ret;\n}\n"

/* A copy under another path is a library of its own: nothing in it is shared with the copies of other processes. */
static int copy(const char *from, const char *folder, const char *name) {
    char to[300];
    struct stat status;
    int in = open(from, O_RDONLY | O_CLOEXEC), out;
    off_t done = 0;
    snprintf(to, sizeof to, "%s/%s", folder, name);
    out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    if (in >= 0 && out >= 0 && fstat(in, &status) == 0)
        while (done < status.st_size && sendfile(out, in, &done, (size_t)(status.st_size - done)) > 0)
            ;
    const bool whole = in >= 0 && out >= 0 && done == status.st_size;
    if (!whole)
        fprintf(stderr, "%s cannot be copied to %s\n", from, to);
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return whole ? 0 : -1;
}

struct client *client_new(const char *name, const char *root, const char *hook, const char *driver, uint64_t launch_ns) {
    struct client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return NULL;
    snprintf(client->name, sizeof client->name, "%s", name);
    snprintf(client->root, sizeof client->root, "%s", root);
    client->hooked = hook != NULL;
    client->launch_ns = launch_ns;
    if (copy(driver, root, DRIVER) != 0 || (hook != NULL && copy(hook, root, HOOK) != 0)) {
        free(client);
        return NULL;
    }
    client->process = vt_process(name, root, 1);
    return client;
}

int client_process(const struct client *client) { return client->process; }

void client_kernel(struct client *client, uint32_t index, struct kernel kernel) {
    client->kernels[index] = kernel;
    client->weights += kernel.weight;
    if (index >= client->kernel_count)
        client->kernel_count = index + 1;
}

void client_thread(struct client *client, const struct step *steps, uint32_t count, uint32_t again) {
    struct thread *thread = &client->threads[client->thread_count];
    struct step *own = calloc(count, sizeof *own);
    memcpy(own, steps, count * sizeof *own);
    *thread = (struct thread){client, own, count, again, 88172645463325252u + client->thread_count, ""};
    snprintf(thread->name, sizeof thread->name, "t%u", client->thread_count++);
}

struct outcome client_outcome(const struct client *client) { return client->outcome; }

bool client_checks(struct client *client, CUresult result, uint32_t step) {
    if (result == CUDA_SUCCESS)
        return true;
    if (client->outcome.error == CUDA_SUCCESS) {
        client->outcome.error = (int32_t)result;
        client->outcome.error_step = step;
    }
    return false;
}

static void *library(const struct client *client, const char *name) {
    char path[300];
    void *handle;
    snprintf(path, sizeof path, "%s/%s", client->root, name);
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        fprintf(stderr, "%s\n", dlerror());
    return handle;
}

static bool find_functions(struct client *client) {
    void *const driver = library(client, DRIVER);
    void *const hook = client->hooked ? library(client, HOOK) : NULL;
    if (driver == NULL || (client->hooked && hook == NULL))
        return false;
#define FIND(name)                                                                              \
    if (hook != NULL)                                                                           \
        *(void **)&client->name = dlsym(hook, #name);                                           \
    if (client->name == NULL)                                                                   \
        *(void **)&client->name = dlsym(driver, #name);                                         \
    if (client->name == NULL) {                                                                 \
        fprintf(stderr, "neither the hook nor the driver in %s has %s\n", client->root, #name); \
        return false;                                                                           \
    }
    FUNCTIONS(FIND)
#undef FIND
    return true;
}

static bool make_functions(struct client *client) {
    const size_t size = sizeof HEAD + KERNELS * (sizeof ENTRY + 8);
    char *text = malloc(size);
    CUmodule module;
    size_t at = (size_t)snprintf(text, size, HEAD);
    uint32_t functions = 0;
    for (uint32_t i = 0; i < client->kernel_count; i++)
        if (client->kernels[i].function >= functions)
            functions = client->kernels[i].function + 1;
    for (uint32_t i = 0; i < functions; i++)
        at += (size_t)snprintf(text + at, size - at, ENTRY, i);
    bool made = client_checks(client, client->cuModuleLoadData(&module, text), 0);
    for (uint32_t i = 0; made && i < functions; i++) {
        char name[16];
        snprintf(name, sizeof name, "k%u", i);
        made = client_checks(client, client->cuModuleGetFunction(&client->functions[i], module, name), 0);
    }
    free(text);
    return made;
}

static bool make_objects(struct client *client) {
    bool streams[STREAMS] = {false}, events[EVENTS] = {false};
    for (uint32_t t = 0; t < client->thread_count; t++)
        for (uint32_t i = 0; i < client->threads[t].count; i++) {
            const struct step *step = &client->threads[t].steps[i];
            streams[step->stream] = true;
            if (step->kind == STEP_RECORD)
                events[step->object] = true;
        }
    for (uint32_t i = 1; i < STREAMS; i++)
        if (streams[i] && !client_checks(client, client->cuStreamCreate(&client->streams[i], CU_STREAM_NON_BLOCKING), 0))
            return false;
    for (uint32_t i = 0; i < EVENTS; i++)
        if (events[i] && !client_checks(client, client->cuEventCreate(&client->events[i], CU_EVENT_DISABLE_TIMING), 0))
            return false;
    return true;
}

static bool set_up(struct client *client) {
    return find_functions(client) && client_checks(client, client->cuInit(0), 0) &&
           client_checks(client, client->cuDevicePrimaryCtxRetain(&client->context, 0), 0) &&
           client_checks(client, client->cuCtxSetCurrent(client->context), 0) && make_functions(client) && make_objects(client);
}

static void other_thread(void *argument) {
    struct thread *thread = argument;
    if (client_checks(thread->client, thread->client->cuCtxSetCurrent(thread->client->context), 0))
        run_steps(thread);
    thread->client->outcome.running--;
}

static void first_thread(void *argument) {
    struct client *client = argument;
    if (client->delay_ns > 0)
        vt_sleep(client->delay_ns);
    if (set_up(client)) {
        client->outcome.running = client->thread_count;
        for (uint32_t i = 1; i < client->thread_count; i++)
            vt_spawn(client->process, client->threads[i].name, other_thread, &client->threads[i]);
        run_steps(&client->threads[0]);
        client->outcome.running--;
    } else if (client->outcome.error == CUDA_SUCCESS) {
        client->outcome.error = -1;
    }
}

void client_start(struct client *client, uint64_t delay_ns) {
    client->delay_ns = delay_ns;
    vt_spawn(client->process, client->threads[0].name, first_thread, client);
}
