#include "tpu/tpu_folder.h"

#include <stdio.h>

#include "base/kernel.h"
#include "base/settings.h"

static bool path_of(char *path, size_t size, const char *file) {
    const int length = snprintf(path, size, "%s/%s", es_setting_tpu_folder(), file);

    return length > 0 && (size_t)length < size;
}

bool es_tpu_folder_socket(char *path, size_t size) { return path_of(path, size, "hook.sock"); }

ssize_t es_tpu_folder_read(char *text, size_t size) {
    static char path[ES_SETTING_BYTES + 16]; /* stacks may be small; one thread looks */
    ssize_t bytes;
    int fd;

    if (!path_of(path, sizeof(path), "hook.conf") || (fd = es_kernel_open(path, O_RDONLY | O_NONBLOCK, 0)) < 0)
        return -1;
    bytes = es_kernel_read(fd, text, size);
    (void)es_kernel_close(fd);
    return bytes;
}
