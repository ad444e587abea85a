#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "driver/symbols.h"
#include "entry/substitutes.h"
#include "loader/lookups.h"
#include "loader/objects.h"

/* dlfcn.h is not included: it would declare the very functions that doors.S defines. */
#define HANDLE_DEFAULT ((void *)0)
#define HANDLE_NEXT ((void *)-1)

typedef void *(*dlsym_function)(void *handle, const char *name);
typedef void *(*dlvsym_function)(void *handle, const char *name, const char *version);

/* What doors.S does: jump to `forward` when there is one, else return the answer. */
struct choice {
    void *answer;
    void *forward;
};

struct choice es_choose_dlsym(void *handle, const char *name, const void *caller) __attribute__((visibility("hidden")));
struct choice es_choose_dlvsym(void *handle, const char *name, const char *version, const void *caller)
    __attribute__((visibility("hidden")));

/* What doors.S defines. */
extern char es_door_dlsym[] __attribute__((visibility("hidden")));
extern char es_door_dlvsym[] __attribute__((visibility("hidden")));

static void *nothing(void) { return NULL; }

/* The real ones are looked up once each; two threads that do so at once find the same. */
static void *next_dlsym(void) {
    static void *next;
    void *known = __atomic_load_n(&next, __ATOMIC_RELAXED);

    if (known == NULL) {
        known = es_next_symbol("dlsym");
        __atomic_store_n(&next, known, __ATOMIC_RELAXED);
    }
    return known != NULL ? known : (void *)nothing;
}

static void *next_dlvsym(void) {
    static void *next;
    void *known = __atomic_load_n(&next, __ATOMIC_RELAXED);

    if (known == NULL) {
        known = es_next_symbol("dlvsym");
        __atomic_store_n(&next, known, __ATOMIC_RELAXED);
    }
    return known != NULL ? known : (void *)nothing;
}

/* Is this look-up one that the hook may answer? */
static int wrapped(const char *name) {
    if (name == NULL || !(es_text_begins(name, "cu") || es_text_begins(name, "nvml")))
        return -1;
    return es_symbol_named(name);
}

/* The driver finds its own functions, and must not find the hook's; in the global scope these come first. */
static bool for_driver(void *handle, int symbol, const void *caller, void *forward, struct choice *choice) {
    if (symbol < 0 || !es_driver_find() || !es_driver_contains(caller))
        return false;
    *choice = (struct choice){NULL, forward};
    if (handle == HANDLE_DEFAULT && es_driver[symbol] != NULL)
        *choice = (struct choice){es_driver[symbol], NULL};
    return true;
}

/* The global scope as it is without the hook is what comes after the hook, asked from here. The answer goes through a
 * volatile so that this stays a call: a jump would ask in the caller's name. */
static void *in_global_scope(const char *name) {
    void *volatile found = ((dlsym_function)next_dlsym())(HANDLE_NEXT, name);

    return found;
}

static void *versioned_in_global_scope(const char *name, const char *version) {
    void *volatile found = ((dlvsym_function)next_dlvsym())(HANDLE_NEXT, name, version);

    return found;
}

/* The wrapper for what was found without the hook or by a handle, or that itself. */
static void *substitute(void *found, const char *name, int symbol) {
    void *wrapper;

    /* The hook itself, found by the handle of the whole program: without a driver there is nothing behind it. */
    if (!es_library_find((enum es_symbol)symbol))
        return found == es_wrapper((enum es_symbol)symbol) ? in_global_scope(name) : found;
    wrapper = es_wrapper_of((enum es_symbol)symbol, found);
    return wrapper != NULL ? wrapper : found;
}

/* RTLD_NEXT, asked by whoever stands behind the hook, would go past it; asked by who stands before, it ends here. The
 * wrapper is right for both, as it calls the driver itself and nobody in between. */
static struct choice next(int symbol, void *forward) {
    if (es_library_find((enum es_symbol)symbol) && es_driver[symbol] != NULL)
        return (struct choice){es_wrapper((enum es_symbol)symbol), NULL};
    return (struct choice){NULL, forward};
}

/* The hook's door of this name, when who asks stands before the hook: a library that passes look-ups on asks for the next
 * dlsym by its version or of a library, which would lead round the hook. Who stands behind it is asked by it, and would
 * ask it for ever. */
static void *door(const char *name, const void *caller) {
    void *found = NULL;

    if (name != NULL && es_text_same(name, "dlsym"))
        found = es_door_dlsym;
    else if (name != NULL && es_text_same(name, "dlvsym"))
        found = es_door_dlvsym;
    return found != NULL && es_object_before_hook(caller) ? found : NULL;
}

struct choice es_choose_dlsym(void *handle, const char *name, const void *caller) {
    const int symbol = wrapped(name);
    struct choice own;
    void *found;

    if (for_driver(handle, symbol, caller, next_dlsym(), &own))
        return own;
    if (symbol < 0 && handle != HANDLE_DEFAULT && handle != HANDLE_NEXT && (found = door(name, caller)) != NULL &&
        ((dlsym_function)next_dlsym())(handle, name) == es_next_symbol(name))
        return (struct choice){found, NULL};
    if (symbol < 0)
        return (struct choice){NULL, next_dlsym()};
    if (handle == HANDLE_NEXT && in_global_scope(name) != NULL)
        return next(symbol, next_dlsym());
    found = handle == HANDLE_NEXT ? NULL : ((dlsym_function)next_dlsym())(handle, name);
    /* Found first, it is not what would be found without it. */
    if (handle == HANDLE_DEFAULT && found == es_wrapper((enum es_symbol)symbol))
        found = in_global_scope(name);
    return (struct choice){substitute(found, name, symbol), NULL};
}

struct choice es_choose_dlvsym(void *handle, const char *name, const char *version, const void *caller) {
    const int symbol = wrapped(name);
    struct choice own;
    void *found;

    if (for_driver(handle, symbol, caller, next_dlvsym(), &own))
        return own;
    if (symbol < 0 && (found = door(name, caller)) != NULL)
        return (struct choice){found, NULL};
    if (symbol < 0)
        return (struct choice){NULL, next_dlvsym()};
    if (handle == HANDLE_NEXT && versioned_in_global_scope(name, version) != NULL)
        return next(symbol, next_dlvsym());
    found = handle == HANDLE_NEXT ? NULL : ((dlvsym_function)next_dlvsym())(handle, name, version);
    if (handle == HANDLE_DEFAULT && found == es_wrapper((enum es_symbol)symbol))
        found = versioned_in_global_scope(name, version);
    return (struct choice){substitute(found, name, symbol), NULL};
}
