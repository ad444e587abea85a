#include "wrappers.h"

#include "gate.h"
#include "keys.h"
#include "sync.h"
#include "symbols.h"

/* The wrappers of everything that submits, made from symbols.def. */

static inline CUstream own(CUstream stream)
{
    return stream == NULL ? CU_STREAM_PER_THREAD : stream;
}

#define ES_DONE_LAUNCH(stream)
#define ES_DONE_FETCH(stream) es_sync_done(stream);

#define ES_SUBMIT(kind, name, parameters, arguments, key, stream)    \
    CUresult es_##name parameters                                    \
    {                                                                \
        const uint64_t what = key;                                   \
        const CUstream where = stream;                               \
        struct es_slot *slot = es_gate_pass(what, where);            \
        CUresult result;                                             \
                                                                     \
        if (__builtin_expect(slot != NULL, 1)) {                     \
            result = ES_DRIVER(name) arguments;                      \
            es_gate_passed(slot);                                    \
        } else {                                                     \
            ES_REAL_OR_RETURN(name);                                 \
            slot = es_gate_admit(what, where);                       \
            result = ES_DRIVER(name) arguments;                      \
            es_gate_admitted(slot);                                  \
        }                                                            \
        ES_DONE_##kind(where) return result;                         \
    }                                                                \
    ES_EXPORT(name);

#define ES_PTSZ(kind, name, parameters, arguments, key, stream)       \
    ES_SUBMIT(kind, name, parameters, arguments, key, stream)         \
    ES_SUBMIT(kind, name##_ptsz, parameters, arguments, key, own(stream))
#define ES_PTDS(kind, name, parameters, arguments, key)                   \
    ES_SUBMIT(kind, name, parameters, arguments, key, CU_STREAM_LEGACY)   \
    ES_SUBMIT(kind, name##_ptds, parameters, arguments, key, CU_STREAM_PER_THREAD)
#define ES_ONE(kind, name, parameters, arguments, key, stream) ES_SUBMIT(kind, name, parameters, arguments, key, stream)
#define ES_OWN(name)
#define ES_USED(name)
#define ES_NVML(name)
#define ES_NVML_USED(name)
#include "symbols.def"
