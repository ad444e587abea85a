/* Entry points that the hook has nothing to do with, so that driver_api.h does not have them: textures and surfaces, the
 * linker, graphics, the profiler, banks of shared memory. Enumerations and handles of graphics are plain here, as they are
 * for the compiler. */
#ifndef SIMGPU_ENTRIES_H
#define SIMGPU_ENTRIES_H

#include "driver_api.h"

struct resource;
struct sampling;
struct view;
struct reference;
struct link;

CUresult cuTexObjectCreate(unsigned long long *pTexObject, const struct resource *pResDesc, const struct sampling *pTexDesc,
                           const struct view *pResViewDesc);
CUresult cuTexObjectDestroy(unsigned long long texObject);
CUresult cuTexObjectGetResourceDesc(struct resource *pResDesc, unsigned long long texObject);
CUresult cuTexObjectGetTextureDesc(struct sampling *pTexDesc, unsigned long long texObject);
CUresult cuTexObjectGetResourceViewDesc(struct view *pResViewDesc, unsigned long long texObject);
CUresult cuSurfObjectCreate(unsigned long long *pSurfObject, const struct resource *pResDesc);
CUresult cuSurfObjectDestroy(unsigned long long surfObject);
CUresult cuSurfObjectGetResourceDesc(struct resource *pResDesc, unsigned long long surfObject);

CUresult cuModuleGetTexRef(struct reference **pTexRef, CUmodule hmod, const char *name);
CUresult cuModuleGetSurfRef(struct reference **pSurfRef, CUmodule hmod, const char *name);
CUresult cuTexRefCreate(struct reference **pTexRef);
CUresult cuTexRefDestroy(struct reference *hTexRef);
CUresult cuTexRefSetArray(struct reference *hTexRef, CUarray hArray, unsigned int Flags);
CUresult cuTexRefGetArray(CUarray *phArray, struct reference *hTexRef);
CUresult cuSurfRefSetArray(struct reference *hSurfRef, CUarray hArray, unsigned int Flags);
CUresult cuSurfRefGetArray(CUarray *phArray, struct reference *hSurfRef);
CUresult cuTexRefSetAddress_v2(size_t *ByteOffset, struct reference *hTexRef, CUdeviceptr dptr, size_t bytes);
CUresult cuTexRefSetAddress2D_v3(struct reference *hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr dptr, size_t Pitch);
CUresult cuTexRefGetAddress_v2(CUdeviceptr *pdptr, struct reference *hTexRef);
CUresult cuTexRefSetFormat(struct reference *hTexRef, int fmt, int NumPackedComponents);
CUresult cuTexRefGetFormat(int *pFormat, int *pNumChannels, struct reference *hTexRef);
CUresult cuTexRefSetAddressMode(struct reference *hTexRef, int dim, int am);
CUresult cuTexRefGetAddressMode(int *pam, struct reference *hTexRef, int dim);
CUresult cuTexRefSetFilterMode(struct reference *hTexRef, int fm);
CUresult cuTexRefGetFilterMode(int *pfm, struct reference *hTexRef);
CUresult cuTexRefSetFlags(struct reference *hTexRef, unsigned int Flags);
CUresult cuTexRefGetFlags(unsigned int *pFlags, struct reference *hTexRef);
CUresult cuParamSetTexRef(CUfunction hfunc, int texunit, struct reference *hTexRef);

CUresult cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues, struct link **stateOut);
CUresult cuLinkAddData_v2(struct link *state, int type, void *data, size_t size, const char *name, unsigned int numOptions,
                          CUjit_option *options, void **optionValues);
CUresult cuLinkAddFile_v2(struct link *state, int type, const char *path, unsigned int numOptions, CUjit_option *options,
                          void **optionValues);
CUresult cuLinkComplete(struct link *state, void **cubinOut, size_t *sizeOut);
CUresult cuLinkDestroy(struct link *state);

CUresult cuGraphicsGLRegisterBuffer(void **pCudaResource, unsigned int buffer, unsigned int Flags);
CUresult cuGraphicsGLRegisterImage(void **pCudaResource, unsigned int image, unsigned int target, unsigned int Flags);
CUresult cuGraphicsUnregisterResource(void *resource);
CUresult cuGraphicsSubResourceGetMappedArray(CUarray *pArray, void *resource, unsigned int arrayIndex, unsigned int mipLevel);
CUresult cuGraphicsResourceGetMappedPointer_v2(CUdeviceptr *pDevPtr, size_t *pSize, void *resource);
CUresult cuGraphicsMapResources(unsigned int count, void **resources, CUstream hStream);
CUresult cuGraphicsMapResources_ptsz(unsigned int count, void **resources, CUstream hStream);
CUresult cuGraphicsUnmapResources(unsigned int count, void **resources, CUstream hStream);
CUresult cuGraphicsUnmapResources_ptsz(unsigned int count, void **resources, CUstream hStream);

CUresult cuProfilerInitialize(const char *configFile, const char *outputFile, int outputMode);
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);
CUresult cuCtxGetSharedMemConfig(int *pConfig);
CUresult cuCtxSetSharedMemConfig(int config);
CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, int config);

#endif
