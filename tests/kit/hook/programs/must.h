#ifndef EDGESHARE_MUST_H
#define EDGESHARE_MUST_H

#include <stdio.h>
#include <stdlib.h>

#include "driver_api.h"

/* What a call must have answered for the program to go on. */
#define MUST(call)                                                                     \
    do {                                                                               \
        CUresult answer = (call);                                                      \
        if (answer != CUDA_SUCCESS) {                                                  \
            printf("%s:%d: %s answered %d\n", __FILE__, __LINE__, #call, (int)answer); \
            exit(3);                                                                   \
        }                                                                              \
    } while (0)

#endif
