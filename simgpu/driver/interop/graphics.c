/* Buffers and images of OpenGL, and images of Vulkan's memory: there is no graphics here, so that none can be had. */
#include "driver/base/driver.h"
#include "driver/base/entries.h"
#include "driver/context/context.h"
#include "driver/stream/stream.h"

static CUresult none_to_register(void **resource) {
    CURRENT(context);
    (void)context;
    return resource ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGraphicsGLRegisterBuffer(void **pCudaResource, unsigned int buffer, unsigned int Flags) {
    (void)buffer, (void)Flags;
    return none_to_register(pCudaResource);
}

EXPORT CUresult cuGraphicsGLRegisterImage(void **pCudaResource, unsigned int image, unsigned int target, unsigned int Flags) {
    (void)image, (void)target, (void)Flags;
    return none_to_register(pCudaResource);
}

/* Nobody has a resource: every handle is a wrong one. */
static CUresult no_such_resource(void) {
    CURRENT(context);
    (void)context;
    return CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuGraphicsUnregisterResource(void *resource) {
    (void)resource;
    return no_such_resource();
}

EXPORT CUresult cuGraphicsSubResourceGetMappedArray(CUarray *pArray, void *resource, unsigned int arrayIndex,
                                                    unsigned int mipLevel) {
    (void)pArray, (void)resource, (void)arrayIndex, (void)mipLevel;
    return no_such_resource();
}

/* The form of 32-bit addresses, which some programs look up only to see that it is there. */
EXPORT CUresult cuGraphicsResourceGetMappedPointer(unsigned int *pDevPtr, unsigned int *pSize, void *resource) {
    (void)pDevPtr, (void)pSize, (void)resource;
    return no_such_resource();
}

EXPORT CUresult cuGraphicsResourceGetMappedPointer_v2(CUdeviceptr *pDevPtr, size_t *pSize, void *resource) {
    (void)pDevPtr, (void)pSize, (void)resource;
    return no_such_resource();
}

static CUresult map(CUstream hStream, unsigned int count, void **resources) {
    struct CUstream_st *stream;
    CUresult result = find_stream(hStream, &stream, __func__);
    if (result != CUDA_SUCCESS)
        return result;
    return count && resources ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
}

static CUresult do_cuGraphicsMapResources(unsigned int count, void **resources, CUstream hStream) {
    return map(hStream, count, resources);
}
EXPORT_PTSZ(cuGraphicsMapResources, (unsigned int count, void **resources, CUstream hStream), count, resources, hStream)

static CUresult do_cuGraphicsUnmapResources(unsigned int count, void **resources, CUstream hStream) {
    return map(hStream, count, resources);
}
EXPORT_PTSZ(cuGraphicsUnmapResources, (unsigned int count, void **resources, CUstream hStream), count, resources, hStream)

EXPORT CUresult cuExternalMemoryGetMappedMipmappedArray(CUmipmappedArray *mipmap, CUexternalMemory extMem,
                                                        const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *mipmapDesc) {
    CURRENT(context);
    (void)context;
    return mipmap && extMem && mipmapDesc ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}
