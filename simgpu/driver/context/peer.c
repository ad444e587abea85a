/* GPUs that reach each other's memory: here every two of a machine do, but integrated ones. */
#include "driver/base/driver.h"
#include "driver/context/context.h"

static bool can_reach(CUdevice device, CUdevice peer) {
    return device != peer && !gpu_of_device(device)->model.integrated && !gpu_of_device(peer)->model.integrated;
}

EXPORT CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev) {
    CHECK_DRIVER();
    if (!canAccessPeer)
        return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(dev) || !valid_device(peerDev))
        return CUDA_ERROR_INVALID_DEVICE;
    *canAccessPeer = can_reach(dev, peerDev);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice) {
    CHECK_DRIVER();
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(srcDevice) || !valid_device(dstDevice) || srcDevice == dstDevice)
        return CUDA_ERROR_INVALID_DEVICE;
    switch (attrib) {
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED: *value = can_reach(srcDevice, dstDevice); break;
    /* Over PCIe: all alike, and no atomics. */
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED: *value = 0; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* The place that says whether a context may use another's memory; NULL: it is full. With the context locked. */
static uint64_t *find_peer(struct CUctx_st *context, uint64_t id) {
    for (int index = 0; index < PEERS; index++) {
        if (context->peers[index] == id)
            return &context->peers[index];
    }
    return NULL;
}

EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags) {
    CURRENT(context);
    CUresult result = check_context(peerContext, __func__);
    if (result == CUDA_SUCCESS && peerContext == context)
        result = CUDA_ERROR_INVALID_CONTEXT;
    if (result != CUDA_SUCCESS)
        return result;
    if (Flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!can_reach(context->device, peerContext->device))
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    pthread_mutex_lock(&context->lock);
    uint64_t *place = find_peer(context, 0);
    if (find_peer(context, peerContext->id))
        result = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    else if (place)
        *place = peerContext->id;
    else
        result = CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_unlock(&context->lock);
    return result;
}

EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peerContext) {
    CURRENT(context);
    CUresult result = check_context(peerContext, __func__);
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&context->lock);
    uint64_t *place = find_peer(context, peerContext->id);
    if (place)
        *place = 0;
    pthread_mutex_unlock(&context->lock);
    return place ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}
