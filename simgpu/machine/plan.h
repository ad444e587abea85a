/* What a machine is made from, and has in its file: models of GPUs, what the driver's calls cost, what NVML answers. As in
 * layout.h, numbers and structures only. */

enum simgpu_scheduling { SIMGPU_FIFO = 0, SIMGPU_TIMESLICE = 1 };
enum simgpu_mig_mode { SIMGPU_MIG_NEVER = 0, SIMGPU_MIG_OFF = 1, SIMGPU_MIG_ON = 2 };
/* What a function of NVML answers, beside the errors of its own, which are below these. */
enum simgpu_answer_kind {
    SIMGPU_ANSWER_NO_MEMORY = 10001, /* it lists processes, but not what memory they have */
    SIMGPU_ANSWER_WIDE = 10002       /* it lists them in the larger structure of some drivers of R535 */
};

/* A MIG device, as the management library lists it; the driver here knows none. */
struct simgpu_mig {
    char uuid[48]; /* "MIG-" and 36 characters */
    char profile[16];
    uint64_t memory_bytes;
    uint32_t gpu_instance;
    uint32_t compute_instance;
    uint16_t multiprocessors; /* how much of the GPU it has, like what follows */
    uint8_t gpu_slices;
    uint8_t compute_slices;
    uint8_t copy_engines;
    uint8_t decoders;
    uint8_t jpeg_engines;
    uint8_t ofa_engines;
};

/* What a GPU is. */
struct simgpu_model {
    char name[64];
    char architecture[16];
    uint64_t memory_bytes;
    uint64_t reserved_bytes;         /* held by the driver itself, never free */
    uint64_t context_overhead_bytes; /* what one context takes */
    uint32_t compute_major;
    uint32_t compute_minor;
    uint32_t multiprocessors;
    uint32_t threads_per_multiprocessor;
    uint32_t clock_khz;
    uint32_t memory_clock_khz;
    uint32_t memory_bus_bits;
    uint32_t l2_bytes;
    uint32_t pci_device_id; /* device in the upper half, vendor in the lower, as NVML has it */
    uint32_t integrated;
    uint32_t ecc;
    uint32_t power_limit_mw;
    uint32_t mig; /* enum simgpu_mig_mode */
    uint32_t mig_count;
    uint32_t virtual_gpu; /* 1: what a hypervisor made of a part of one */
    uint32_t unused[3];
    struct simgpu_mig migs[7];
};

/* What the driver's calls cost the calling thread, in nanoseconds, and what a switch between contexts costs a GPU. */
struct simgpu_pace {
    char name[16];      /* "": nothing costs anything */
    uint64_t launch_ns; /* of a kernel, a copy or a set */
    uint64_t graph_launch_ns;
    uint64_t graph_node_ns; /* more, for each node of the graph */
    uint64_t event_record_ns;
    uint64_t event_query_ns;
    uint64_t context_switch_ns;
};

/* What one function of NVML answers. */
struct simgpu_answer {
    char function[56];
    uint32_t answer; /* an error of NVML's, or simgpu_answer_kind; 0: as ever */
    uint32_t unused;
};

/* NVML's profile: functions that are not here answer as ever. */
struct simgpu_nvml {
    char name[32]; /* empty: it has none */
    uint32_t count;
    uint32_t unused[7];
    struct simgpu_answer answers[48];
};

/* What a machine is made from. */
struct simgpu_plan {
    uint32_t gpu_count;
    uint32_t scheduling;
    uint32_t overlap;
    uint32_t cuda_version;
    char driver_version[32];
    struct simgpu_pace pace;
    struct simgpu_nvml nvml;
    struct simgpu_model models[16];
    char uuids[16][48];
};
