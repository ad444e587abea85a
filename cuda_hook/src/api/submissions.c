#include "api/wrappers.h"

#include "api/sync.h"
#include "driver/symbols.h"
#include "memory/graph_memory.h"
#include "memory/growth.h"
#include "pass/gate.h"
#include "threads/keys.h"

/* The wrappers of everything that submits, made from symbols.def. */

static inline CUstream own(CUstream stream) { return stream == NULL ? CU_STREAM_PER_THREAD : stream; }

/* A graph may take memory at its first launch. */
#define ES_FITS_LAUNCH(stream) true
#define ES_FITS_FETCH(stream) true
#define ES_FITS_GRAPH(stream) es_growth_graph_fits(hGraphExec, stream)
#define ES_DONE_LAUNCH(stream)
/* One that failed has waited for nothing. */
#define ES_DONE_FETCH(stream)   \
    if (result == CUDA_SUCCESS) \
        es_sync_done(stream);
#define ES_DONE_GRAPH(stream) es_graph_memory_launched();

/* One call of the driver for both ways to it, and what is asked for passed on in memory: else the compiler would keep some
 * of a launch's eleven arguments, and the key, in registers that it has to save first. */
#define ES_SUBMIT(kind, name, parameters, arguments, key, stream) \
    CUresult es_##name parameters {                               \
        uintptr_t passed = es_gate_pass(key, stream);             \
        CUresult result;                                          \
                                                                  \
        if (__builtin_expect(passed == ES_ASK, 0)) {              \
            ES_REAL_OR_RETURN(name);                              \
            passed = es_gate_ask();                               \
        }                                                         \
        if (!ES_FITS_##kind(stream)) {                            \
            es_gate_passed(passed);                               \
            return CUDA_ERROR_OUT_OF_MEMORY;                      \
        }                                                         \
        result = ES_DRIVER(name) arguments;                       \
        es_gate_passed(passed);                                   \
        ES_DONE_##kind(stream) return result;                     \
    }                                                             \
    ES_EXPORT(name);

#define ES_PTSZ(kind, name, parameters, arguments, key, stream) \
    ES_SUBMIT(kind, name, parameters, arguments, key, stream)   \
    ES_SUBMIT(kind, name##_ptsz, parameters, arguments, key, own(stream))
#define ES_PTDS(kind, name, parameters, arguments, key)                 \
    ES_SUBMIT(kind, name, parameters, arguments, key, CU_STREAM_LEGACY) \
    ES_SUBMIT(kind, name##_ptds, parameters, arguments, key, CU_STREAM_PER_THREAD)
#define ES_ONE(kind, name, parameters, arguments, key, stream) ES_SUBMIT(kind, name, parameters, arguments, key, stream)
#define ES_OWN(name)
#define ES_USED(name)
#define ES_NVML(name)
#define ES_NVML_USED(name)
#include "driver/symbols.def"
