#include "base/settings.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "base/kernel.h"

/* Where a container has the folders of its allocations mounted. */
#define MOUNTED "/run/edgeshare"
#define TPU_MOUNTED "/run/edgeshare-tpu"
#define CONFIG "/hook.conf"

enum { UNREAD, READING, READ };

static uint32_t state;
static char folder[ES_SETTING_BYTES], tpu_folder[ES_SETTING_BYTES], log_file[ES_SETTING_BYTES];

static const char *said(const char *name) {
    const char *value = getauxval(AT_SECURE) != 0 ? NULL : getenv(name);

    return value != NULL ? value : "";
}

/* What is mounted goes before what a variable says: a pod's spec sets variables, and would take its programs out of their
 * share. It is an allocation's folder by its hook.conf, which is there before the container is. On a host a manager has
 * its sockets in a folder of that name; there the variable is obeyed. */
static const char *folder_of(const char *mounted, const char *config, const char *name) {
    const char *named = said(name);
    const int error = errno;
    const bool is_obeyed = named[0] != '\0' && es_kernel_absent(config);

    errno = error;
    return is_obeyed ? named : mounted;
}

static const char *gpu_folder(void) { return folder_of(MOUNTED, MOUNTED CONFIG, "EDGESHARE_HOOK_DIR"); }

static const char *edgetpu_folder(void) { return folder_of(TPU_MOUNTED, TPU_MOUNTED CONFIG, "EDGESHARE_TPU_HOOK_DIR"); }

static const char *log_name(void) { return said("EDGESHARE_HOOK_LOG"); }

static void keep(char *place, const char *value) {
    size_t i;

    for (i = 0; i < ES_SETTING_BYTES - 1 && value[i] != '\0'; i++)
        place[i] = value[i];
    place[i] = '\0';
}

/* Whoever comes while another thread reads looks for himself: nobody waits here, as a signal handler could not. */
static const char *setting(const char *kept, const char *(*look)(void)) {
    uint32_t unread = UNREAD;

    if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == READ)
        return kept;
    if (!__atomic_compare_exchange_n(&state, &unread, READING, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
        return unread == READ ? kept : look();
    keep(folder, gpu_folder());
    keep(tpu_folder, edgetpu_folder());
    keep(log_file, log_name());
    __atomic_store_n(&state, READ, __ATOMIC_RELEASE);
    return kept;
}

const char *es_setting_folder(void) { return setting(folder, gpu_folder); }

const char *es_setting_tpu_folder(void) { return setting(tpu_folder, edgetpu_folder); }

const char *es_setting_log(void) { return setting(log_file, log_name); }
