#include "api/wrappers.h"
#include "driver/symbols.h"
#include "memory/graph_memory.h"
#include "pass/gate.h"
#include "threads/keys.h"

/* A graph may be uploaded to the device by the call that makes it executable; only then does that call submit. */

static bool uploads(const CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
    return params != NULL && (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0;
}

#define INSTANTIATE(name, default_stream)                                                                            \
    CUresult es_##name(CUgraphExec *phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams) { \
        CUstream stream;                                                                                             \
        uintptr_t passed;                                                                                            \
        CUresult result;                                                                                             \
                                                                                                                     \
        ES_REAL_OR_RETURN(name);                                                                                     \
        if (!uploads(instantiateParams))                                                                             \
            return ES_DRIVER(name)(phGraphExec, hGraph, instantiateParams);                                          \
        stream = instantiateParams->hUploadStream != NULL ? instantiateParams->hUploadStream : default_stream;       \
        passed = es_gate_pass(es_key_instantiation(hGraph), stream);                                                 \
        if (passed == ES_ASK)                                                                                        \
            passed = es_gate_ask();                                                                                  \
        result = ES_DRIVER(name)(phGraphExec, hGraph, instantiateParams);                                            \
        es_gate_passed(passed);                                                                                      \
        es_graph_memory_launched();                                                                                  \
        return result;                                                                                               \
    }                                                                                                                \
    ES_EXPORT(name)

INSTANTIATE(cuGraphInstantiateWithParams, CU_STREAM_LEGACY);
INSTANTIATE(cuGraphInstantiateWithParams_ptsz, CU_STREAM_PER_THREAD);
