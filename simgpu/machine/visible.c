#include "machine/visible.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The next item of a comma-separated list; NULL at its end. */
static const char *next_item(const char **rest, size_t *length) {
    if (!*rest)
        return NULL;
    const char *item = *rest;
    const char *comma = strchr(item, ',');
    *rest = comma ? comma + 1 : NULL;
    size_t size = comma ? (size_t)(comma - item) : strlen(item);
    while (size && isspace((unsigned char)*item)) {
        item++;
        size--;
    }
    while (size && isspace((unsigned char)item[size - 1]))
        size--;
    *length = size;
    return item;
}

/* Which of `gpus` an item names: its place among them or a UUID's beginning; -1: none, or more than one. */
static int find(const struct simgpu_machine *shared, const uint32_t *gpus, int count, const char *item, size_t length) {
    if (length && isdigit((unsigned char)*item)) {
        char *end;
        unsigned long index = strtoul(item, &end, 10);
        return end == item + length && index < (unsigned long)count ? (int)index : -1;
    }
    int found = -1;
    for (int index = 0; length > 4 && index < count; index++) {
        if (strncmp(shared->gpus[gpus[index]].uuid, item, length) == 0) {
            if (found >= 0)
                return -1;
            found = index;
        }
    }
    return found;
}

int visible_to_container(const struct simgpu_machine *shared, uint32_t *gpus) {
    uint32_t all[SIMGPU_GPUS];
    bool chosen[SIMGPU_GPUS] = {false};
    for (uint32_t index = 0; index < shared->gpu_count; index++)
        all[index] = index;
    const char *rest = getenv("NVIDIA_VISIBLE_DEVICES");
    if (!rest || strcmp(rest, "all") == 0) {
        memcpy(gpus, all, sizeof all);
        return (int)shared->gpu_count;
    }
    const char *item;
    size_t length;
    while ((item = next_item(&rest, &length))) {
        int index = find(shared, all, (int)shared->gpu_count, item, length);
        if (index >= 0)
            chosen[index] = true;
    }
    int count = 0;
    for (uint32_t index = 0; index < shared->gpu_count; index++) {
        if (chosen[index])
            gpus[count++] = index;
    }
    return count;
}

int visible_to_cuda(const struct simgpu_machine *shared, uint32_t *gpus) {
    uint32_t present[SIMGPU_GPUS];
    int present_count = visible_to_container(shared, present);
    const char *rest = getenv("CUDA_VISIBLE_DEVICES");
    if (!rest) {
        memcpy(gpus, present, sizeof present);
        return present_count;
    }
    int count = 0;
    const char *item;
    size_t length;
    while ((item = next_item(&rest, &length)) && count < SIMGPU_GPUS) {
        int index = find(shared, present, present_count, item, length);
        if (index < 0)
            break;
        gpus[count++] = present[index];
    }
    return count;
}
