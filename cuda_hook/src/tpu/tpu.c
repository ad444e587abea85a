#include "tpu/tpu.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/kernel.h"
#include "base/log.h"
#include "base/settings.h"
#include "base/text.h"
#include "core/shared/config.h"
#include "core/tools/lock.h"
#include "tpu/tpu_folder.h"

/* What is assigned: read once from hook.conf, before es_tpu_assigned says so, and never changed. */
static char nodes[ES_TPU_PATHS][ES_TPU_PATH_BYTES];  /* opening one takes the device: device= */
static char claims[ES_TPU_PATHS][ES_TPU_PATH_BYTES]; /* where sysfs tells of one on the USB: usb-device= */
static int node_count, claim_count;
static struct es_lock looking;

uint32_t es_tpu_assigned;

/* The value of a line of hook.conf that begins so, into a list that ends at ES_TPU_PATHS. */
static void take_in(const char *line, size_t bytes, const char *name, char (*list)[ES_TPU_PATH_BYTES], int *count) {
    const size_t length = strlen(name);

    if (bytes <= length || memcmp(line, name, length) != 0)
        return;
    if (bytes - length >= ES_TPU_PATH_BYTES || *count == ES_TPU_PATHS) {
        es_alarm("%s/hook.conf names more devices, or longer paths, than this hook tells apart", es_setting_tpu_folder());
        return;
    }
    memcpy(list[*count], line + length, bytes - length);
    list[*count][bytes - length] = '\0';
    (*count)++;
}

ES_LOCKED(looking) static void look(void) {
    static char text[ES_CONFIG_BYTES_MAX]; /* stacks may be small */
    const ssize_t bytes = es_tpu_folder_read(text, sizeof(text));
    const char *line = text;

    while (bytes > 0 && line < text + bytes) {
        const char *end = memchr(line, '\n', (size_t)(text + bytes - line));
        const size_t length = (size_t)((end != NULL ? end : text + bytes) - line);

        take_in(line, length, "device=", nodes, &node_count);
        take_in(line, length, "usb-device=", claims, &claim_count);
        line += length + 1;
    }
    __atomic_store_n(&es_tpu_assigned, node_count + claim_count > 0 ? ES_TPU_SOME : ES_TPU_NONE, __ATOMIC_RELEASE);
}

/* Is something assigned? Who comes while another thread looks waits for it; a handler that interrupted the look does not
 * come here. */
static bool assigned(void) {
    if (__atomic_load_n(&es_tpu_assigned, __ATOMIC_ACQUIRE) == ES_TPU_UNKNOWN) {
        es_lock_take(&looking);
        if (es_tpu_assigned == ES_TPU_UNKNOWN)
            look();
        es_lock_give(&looking);
    }
    return __atomic_load_n(&es_tpu_assigned, __ATOMIC_ACQUIRE) == ES_TPU_SOME;
}

static bool readable(const char *path) { return es_kernel_access(path) == 0 || errno != EFAULT; }

int es_tpu_node(const char *path, int flags) {
    const int error = errno;
    int found = -1;

    /* The driver lets everybody in who only reads (gasket_open in google/gasket-driver). */
    if ((flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH) != 0 || es_locks_held != 0)
        return -1;
    if (assigned() && node_count > 0 && readable(path)) {
        for (int i = 0; i < node_count && found < 0; i++)
            found = es_text_same(path, nodes[i]) ? i : -1;
    }
    errno = error;
    return found;
}

const char *es_tpu_path(int node) { return nodes[node]; }

/* The number in a file of sysfs; 0, which is none, where it cannot be read. */
static unsigned int number_in(const char *folder, const char *file) {
    char path[ES_TPU_PATH_BYTES + 16], text[16];
    unsigned int number = 0;
    ssize_t bytes;
    int fd;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, file);
    fd = es_kernel_open(path, O_RDONLY, 0);
    if (fd < 0)
        return 0;
    bytes = es_kernel_read(fd, text, sizeof(text));
    (void)es_kernel_close(fd);
    for (ssize_t i = 0; i < bytes && text[i] >= '0' && text[i] <= '9'; i++)
        number = number * 10 + (unsigned int)(text[i] - '0');
    return number;
}

bool es_tpu_claimable(int fd) {
    const int error = errno;
    char link[32], path[512], tail[32];
    bool found = false;
    ssize_t bytes;

    if (es_locks_held != 0 || !assigned() || claim_count == 0) {
        errno = error;
        return false;
    }
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    bytes = es_kernel_link(link, path, sizeof(path) - 1);
    path[bytes > 0 ? bytes : 0] = '\0';
    for (int i = 0; i < claim_count && !found; i++) {
        /* Known by its port: it comes under another number after its first use, with its firmware. */
        const int length =
            snprintf(tail, sizeof(tail), "/bus/usb/%03u/%03u", number_in(claims[i], "busnum"), number_in(claims[i], "devnum"));

        found = bytes >= length && es_text_same(path + bytes - length, tail);
    }
    errno = error;
    return found;
}

bool es_tpu_look(void) {
    const int error = errno;
    const bool found = es_locks_held == 0 && assigned();

    errno = error;
    return found;
}
