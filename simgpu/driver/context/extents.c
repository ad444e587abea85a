/* How large textures and surfaces may be: the attributes CU_DEVICE_ATTRIBUTE_MAXIMUM_… by their numbers. */
#include <stddef.h>

#include "driver/context/device.h"

static const struct {
    int attribute, most;
} extents[] = {
    {21, 131072},  /* TEXTURE1D_WIDTH */
    {22, 131072},  /* TEXTURE2D_WIDTH */
    {23, 65536},   /* TEXTURE2D_HEIGHT */
    {24, 16384},   /* TEXTURE3D_WIDTH */
    {25, 16384},   /* TEXTURE3D_HEIGHT */
    {26, 16384},   /* TEXTURE3D_DEPTH */
    {27, 32768},   /* TEXTURE2D_LAYERED_WIDTH */
    {28, 32768},   /* TEXTURE2D_LAYERED_HEIGHT */
    {29, 2048},    /* TEXTURE2D_LAYERED_LAYERS */
    {42, 32768},   /* TEXTURE1D_LAYERED_WIDTH */
    {43, 2048},    /* TEXTURE1D_LAYERED_LAYERS */
    {45, 32768},   /* TEXTURE2D_GATHER_WIDTH */
    {46, 32768},   /* TEXTURE2D_GATHER_HEIGHT */
    {47, 8192},    /* TEXTURE3D_WIDTH_ALTERNATE */
    {48, 8192},    /* TEXTURE3D_HEIGHT_ALTERNATE */
    {49, 32768},   /* TEXTURE3D_DEPTH_ALTERNATE */
    {52, 32768},   /* TEXTURECUBEMAP_WIDTH */
    {53, 32768},   /* TEXTURECUBEMAP_LAYERED_WIDTH */
    {54, 2046},    /* TEXTURECUBEMAP_LAYERED_LAYERS */
    {55, 32768},   /* SURFACE1D_WIDTH */
    {56, 131072},  /* SURFACE2D_WIDTH */
    {57, 65536},   /* SURFACE2D_HEIGHT */
    {58, 16384},   /* SURFACE3D_WIDTH */
    {59, 16384},   /* SURFACE3D_HEIGHT */
    {60, 16384},   /* SURFACE3D_DEPTH */
    {61, 32768},   /* SURFACE1D_LAYERED_WIDTH */
    {62, 2048},    /* SURFACE1D_LAYERED_LAYERS */
    {63, 32768},   /* SURFACE2D_LAYERED_WIDTH */
    {64, 32768},   /* SURFACE2D_LAYERED_HEIGHT */
    {65, 2048},    /* SURFACE2D_LAYERED_LAYERS */
    {66, 32768},   /* SURFACECUBEMAP_WIDTH */
    {67, 32768},   /* SURFACECUBEMAP_LAYERED_WIDTH */
    {68, 2046},    /* SURFACECUBEMAP_LAYERED_LAYERS */
    {70, 131072},  /* TEXTURE2D_LINEAR_WIDTH */
    {71, 65000},   /* TEXTURE2D_LINEAR_HEIGHT */
    {72, 2097120}, /* TEXTURE2D_LINEAR_PITCH */
    {73, 32768},   /* TEXTURE2D_MIPMAPPED_WIDTH */
    {74, 32768},   /* TEXTURE2D_MIPMAPPED_HEIGHT */
    {77, 32768},   /* TEXTURE1D_MIPMAPPED_WIDTH */
};

int extent_of_all(CUdevice_attribute attribute) {
    for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++) {
        if (extents[i].attribute == (int)attribute)
            return extents[i].most;
    }
    return 0;
}
