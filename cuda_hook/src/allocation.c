#include "allocation.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "log.h"

#define DEFAULT_FOLDER "/run/edgeshare"

const char *es_allocation_folder(void)
{
    const char *named = getenv("EDGESHARE_HOOK_DIR");

    return named != NULL && named[0] != '\0' ? named : DEFAULT_FOLDER;
}

bool es_allocation_exists(void)
{
    const int fd = open(es_allocation_folder(), O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return false;
    (void)close(fd);
    return true;
}

bool es_allocation_path(char *path, size_t size, const char *file)
{
    const int length = snprintf(path, size, "%s/%s", es_allocation_folder(), file);

    return length > 0 && (size_t)length < size;
}

void es_allocation_config(struct es_config *config)
{
    char path[512], text[ES_CONFIG_BYTES_MAX];
    ssize_t bytes = 0;
    int fd;

    if (es_allocation_path(path, sizeof(path), "hook.conf")) {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd >= 0) {
            bytes = read(fd, text, sizeof(text));
            (void)close(fd);
        }
    }
    if (es_config_parse(text, bytes > 0 ? (size_t)bytes : 0, config) > 0)
        es_log("%s/hook.conf: some lines mean nothing to this hook and are ignored", es_allocation_folder());
}
