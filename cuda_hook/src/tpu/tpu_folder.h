#ifndef EDGESHARE_TPU_FOLDER_H
#define EDGESHARE_TPU_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The path of the socket in the folder of this process's EdgeTPU allocation (settings.h); false when it does not fit. */
bool es_tpu_folder_socket(char *path, size_t size);

/* Reads its hook.conf: how many bytes; negative where there is none. */
ssize_t es_tpu_folder_read(char *text, size_t size);

#endif
