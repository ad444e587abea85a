#include "link/allocation.h"

#include <stdio.h>

#include "base/kernel.h"
#include "base/log.h"
#include "base/settings.h"

bool es_allocation_exists(void) {
    char path[ES_SETTING_BYTES + 2];

    /* The dot says that it is a folder. Only a sure "no" lets the process out of its share for ever. */
    return es_allocation_path(path, sizeof(path), ".") && !es_kernel_absent(path);
}

bool es_allocation_path(char *path, size_t size, const char *file) {
    const int length = snprintf(path, size, "%s/%s", es_setting_folder(), file);

    return length > 0 && (size_t)length < size;
}

void es_allocation_config(struct es_config *config) {
    static char path[ES_SETTING_BYTES + 16], text[ES_CONFIG_BYTES_MAX]; /* stacks may be small; one thread begins */
    ssize_t bytes = 0;
    int fd;

    if (es_allocation_path(path, sizeof(path), "hook.conf")) {
        fd = es_kernel_open(path, O_RDONLY | O_NONBLOCK, 0);
        if (fd >= 0) {
            bytes = es_kernel_read(fd, text, sizeof(text));
            (void)es_kernel_close(fd);
        }
    }
    if (es_config_parse(text, bytes > 0 ? (size_t)bytes : 0, config) > 0)
        es_log("%s/hook.conf: some lines mean nothing to this hook and are ignored", es_setting_folder());
}
