#ifndef EDGESHARE_TPU_H
#define EDGESHARE_TPU_H

#include <stdbool.h>
#include <stdint.h>

/* Shares of an EdgeTPU. Its driver lets one process in at a time, so that who has it open has the slice, and there is
 * nothing to gate in between: the process has the slice from its first open to its last close. */

enum es_tpu_assigned {
    ES_TPU_UNKNOWN, /* nobody has opened anything for writing yet */
    ES_TPU_NONE,    /* this process has no share of one: nothing here concerns it, for ever */
    ES_TPU_SOME,
};

enum {
    ES_TPU_PATHS = 16, /* device nodes of one allocation that are told apart */
    ES_TPU_PATH_BYTES = 128,
};

extern uint32_t es_tpu_assigned __attribute__((visibility("hidden"))); /* es_tpu_assigned; atomic */

/* One load where there is none. */
static inline bool es_tpu_absent(void) {
    return __builtin_expect(__atomic_load_n(&es_tpu_assigned, __ATOMIC_ACQUIRE) == ES_TPU_NONE, 1);
}

/* Has this process a share of an EdgeTPU? Finds out where nobody has yet. Keeps errno. False where a signal handler
 * interrupted the hook, too. */
bool es_tpu_look(void);

/* Does opening this path, with these flags, wait for a slice? Its number among those assigned, else -1. A path that
 * cannot be read is none: the kernel is to say so. Keeps errno. */
int es_tpu_node(const char *path, int flags);

/* The node of this number. */
const char *es_tpu_path(int node);

/* Does claiming an interface by this descriptor wait for a slice: is it of an assigned device on the USB? Keeps errno. */
bool es_tpu_claimable(int fd);

/* May the calling thread go into what follows? Not in a signal handler that interrupted the hook, and not in a child made
 * by vfork, whose memory is its parent's. In a forked child, forgets what was the parent's. Keeps errno. */
bool es_tpu_ours(void);

/* Waits until this process has a slice, and keeps it until es_tpu_leave: once for each descriptor that has the device, each
 * thread that is about to, and each slice that the program asked for. It goes on without one where the manager is away and
 * the policy says so. True when others may have had the device since this process had it. Keeps errno. */
bool es_tpu_enter(void);

/* Keeps once more what is kept already. Keeps errno. */
void es_tpu_keep(void);

/* Keeps once less what es_tpu_enter or es_tpu_keep kept: gives the slice back when nothing keeps it any more. Keeps errno. */
void es_tpu_leave(void);

/* How long a device that somebody else has is asked for again, although this process has the slice. */
uint64_t es_tpu_patience_ns(void);

/* Does this process go on without a slice, as the manager stayed away? */
bool es_tpu_unshared(void);

/* The connection lives as long as the device is open, also across exec: whether a descriptor of it outlives that. Keeps
 * errno. */
void es_tpu_outlive_exec(bool outlives);

/* What tells a child from its parent is there from now on: before anything is kept, under the session's lock. */
void es_tpu_life_begin(void);

/* In a forked child: what is open is the parent's to give back. */
void es_tpu_session_reset(void);
void es_tpu_holds_reset(void);
void es_tpu_slices_reset(void);

#endif
