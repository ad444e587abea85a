#include "link/pages.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/kernel.h"

enum { DISTANCE = 64 * 1024 }; /* the largest page that a kernel of these machines has: mappings begin at multiples of it */

static uint8_t *pages;
static bool siblings; /* the last session has such a page */

/* A page's file must be a whole page and stay one, or reading it could end the process. */
static bool map_page(int fd, size_t index, int protection) {
    if (!es_channel_file_holds(fd, ES_PAGE_BYTES))
        return false;
    return es_kernel_replace(pages + index * DISTANCE, ES_PAGE_BYTES, protection, fd) == 0;
}

bool es_pages_replace(const int fds[ES_FDS]) {
    if (pages == NULL) {
        uint8_t *fresh = mmap(NULL, ES_FDS * DISTANCE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (fresh == MAP_FAILED)
            return false;
        pages = fresh;
    }
    siblings = map_page(fds[2], 2, PROT_READ | PROT_WRITE);
    return map_page(fds[0], 0, PROT_READ) && map_page(fds[1], 1, PROT_READ | PROT_WRITE);
}

struct es_gate_page *es_pages_gate(void) { return (struct es_gate_page *)pages; }

struct es_hint_page *es_pages_hint(void) { return pages == NULL ? NULL : (struct es_hint_page *)(pages + DISTANCE); }

struct es_siblings_page *es_pages_siblings(void) { return siblings ? (struct es_siblings_page *)(pages + 2 * DISTANCE) : NULL; }
