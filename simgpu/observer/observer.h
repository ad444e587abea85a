/* What Python asks a machine for (cffi reads this file): everything else it reads in the shared file itself. */

struct observer; /* a machine that this process has open */

/* Opens the machine in a directory. NULL: `status` says why (machine.h, enum machine_status). */
struct observer *simgpu_open(const char *directory, int *status);
/* Its shared file. */
const struct simgpu_machine *simgpu_shared(const struct observer *observer);
/* Makes a machine. Returns 0 or an errno value. */
int simgpu_create(const char *directory, const struct simgpu_plan *plan);
/* Notes dead processes and brings every GPU up to now. Returns that time. */
uint64_t simgpu_look(struct observer *observer);
/* The pid of a live process as this one sees it; 0: dead or not to be seen. */
int32_t simgpu_pid(const struct observer *observer, uint32_t slot);
/* Injects a fault; `error` is the CUresult that the GPU's contexts get (0: none), `lost` that the GPU is gone. */
void simgpu_inject(struct observer *observer, uint32_t gpu, uint32_t kind, uint32_t xid, uint32_t error, int lost);
/* Resets a GPU; live contexts get `error`. */
void simgpu_reset(struct observer *observer, uint32_t gpu, uint32_t error);
/* Says how hot a GPU is; 0: what its load makes it. */
void simgpu_set_temperature(struct observer *observer, uint32_t gpu, uint32_t temperature_c);
/* Whether calls of its driver come back. */
void simgpu_set_silent(struct observer *observer, uint32_t gpu, int silent);
/* A row of a GPU's memory waits for a reset to be remapped, or could not be. */
void simgpu_remap(struct observer *observer, uint32_t gpu, int failed);
/* What a function of NVML answers from now on (struct simgpu_answer). Returns 0, or ENOSPC where no more can be told. */
int simgpu_set_answer(struct observer *observer, const char *function, uint32_t answer);
