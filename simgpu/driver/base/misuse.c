/* What no real driver has to survive: it is answered with an error here, and noted. */
#include <stdio.h>
#include <string.h>

#include "driver/base/driver.h"
#include "driver/base/objects.h"

static const char *name_of(enum mark mark) {
    switch (mark) {
    case MARK_CONTEXT: return "context";
    case MARK_STREAM: return "stream";
    case MARK_EVENT: return "event";
    case MARK_MODULE: return "module";
    case MARK_FUNCTION: return "function";
    case MARK_POOL: return "pool";
    case MARK_GRAPH: return "graph";
    case MARK_NODE: return "node";
    case MARK_EXEC: return "graph exec";
    case MARK_ARRAY: return "array";
    case MARK_MIPMAP: return "mipmap";
    case MARK_EXTERNAL_MEMORY: return "external memory";
    case MARK_SEMAPHORE: return "semaphore";
    case MARK_LINK: return "link";
    case MARK_TEXTURE: return "texture";
    case MARK_SURFACE: return "surface";
    case MARK_REFERENCE: return "reference";
    }
    return "object";
}

static const char *const KINDS[] = {"destroyed ", "unknown ", "no context", "in a forked child"};

void misused(const char *call, const char *object, enum misuse kind) {
    char line[128];
    /* The work of NAME and NAME_ptsz is done in do_NAME. */
    int length = snprintf(line, sizeof line, "%s: %s%s\n", call + (strncmp(call, "do_", 3) == 0 ? 3 : 0), KINDS[kind], object);
    if (driver.machine.shared && length < (int)sizeof line)
        machine_note_misuse(line, (size_t)length);
}

bool is_live(const void *handle, enum mark mark, const char *call) {
    const enum mark *found = handle;
    if (found && *found == mark)
        return true;
    misused(call, name_of(mark), found && !*found ? MISUSE_DESTROYED : MISUSE_UNKNOWN);
    return false;
}
