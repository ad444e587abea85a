#ifndef EDGESHARE_ODD_H
#define EDGESHARE_ODD_H

#include <stdio.h>

#include "../must.h"
#include "driver_api.h"

/* Odd but legal things that CUDA programs do (things.def), a file for each of what they are about. What the driver
 * answered is printed, and has to be the same with and without the hook, and with another program on the GPU: nothing
 * printed depends on time. */

enum { US = 1000, MS = 1000000 };

#define SAY(call) printf("%s = %d\n", #call, (int)(call))

/* What `start` sets: the first device's primary context, and its function that runs for the time it is given. */
extern CUcontext context;
extern CUfunction spin;

void start(void);

/* The function of the current context. */
CUfunction load(void);

CUresult launch(CUfunction function, unsigned long long ns, CUstream stream);
CUstream make_stream(unsigned int flags);
CUevent make_event(unsigned int flags);

/* Runs so many threads, 64 at most, each with its number; the sum of what they return. */
int in_threads(int count, void *(*work)(void *));

#define THING(name) void name(void);
#include "things.def"
#undef THING

#endif
