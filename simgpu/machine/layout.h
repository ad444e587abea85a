/* What lies in a simulated machine's shared file, beside what it was made from (plan.h, which comes before it): numbers and
 * structures only, because Python reads these very files (cffi) and C includes them through machine.h, which holds the guard and
 * the size assertions.
 *
 * Every time is CLOCK_MONOTONIC in nanoseconds, which all containers of a machine share. */

enum simgpu_limits {
    SIMGPU_VERSION = 8,
    SIMGPU_GPUS = 16,        /* GPUs of one machine at most */
    SIMGPU_PROCESSES = 1024, /* slots; a dead process keeps its slot until no other is free */
    SIMGPU_CONTEXTS = 256,   /* contexts of one GPU at a time */
    SIMGPU_QUEUE = 1024,     /* entries that a context may have queued: a launch blocks beyond, as drivers do */
    SIMGPU_RING = 4096,      /* entries kept, so that an event can ask when its entry ended */
    SIMGPU_LOG = 131072,     /* executed intervals kept for each GPU */
    SIMGPU_FAULTS = 64,      /* faults kept for each GPU */
    SIMGPU_HOLDERS = 4096,   /* processes that may hold a lock at a time */
    SIMGPU_EXPORTS = 1024,   /* things that processes have exported to others, at a time */
    SIMGPU_IMPORTERS = 32,   /* processes that hold one of those, the exporter included */
    SIMGPU_ANSWERS = 48      /* functions of NVML that answer otherwise than of themselves */
};

enum simgpu_process_state { SIMGPU_PROCESS_FREE = 0, SIMGPU_PROCESS_LIVE = 1, SIMGPU_PROCESS_DEAD = 2 };
enum simgpu_context_state { SIMGPU_CONTEXT_FREE = 0, SIMGPU_CONTEXT_LIVE = 1, SIMGPU_CONTEXT_DYING = 2 };
/* SIMGPU_ORDER does nothing: it only waits for what it is behind, and for its context's turn. */
enum simgpu_kind { SIMGPU_KERNEL = 1, SIMGPU_COPY = 2, SIMGPU_SET = 3, SIMGPU_HOST = 4, SIMGPU_ORDER = 5 };
/* What an entry takes of a GPU whose engines overlap: so many blocks of its multiprocessors, or what is named here. */
enum simgpu_place {
    SIMGPU_PLACE_ALL = 0,          /* all multiprocessors */
    SIMGPU_PLACE_UP = 0x40000000,  /* the copy engine for what comes from the host */
    SIMGPU_PLACE_DOWN = 0x40000001 /* the one for what goes there */
};
enum simgpu_order_state { SIMGPU_WAITS = 0, SIMGPU_RUNS = 1, SIMGPU_PAUSED = 2, SIMGPU_DONE = 3 };
/* How an entry's stream stands to the legacy default stream. */
enum simgpu_scope {
    SIMGPU_SCOPE_NONE = 0,
    SIMGPU_SCOPE_BLOCKING = 1, /* it is behind all that the legacy stream has before it */
    SIMGPU_SCOPE_LEGACY = 2,   /* it is the legacy stream: behind all that both have before it */
    SIMGPU_SCOPE_LOOK = 3      /* the same, but nothing is behind it */
};
enum simgpu_export_kind { SIMGPU_EXPORT_NONE = 0, SIMGPU_EXPORT_MEMORY = 1, SIMGPU_EXPORT_EVENT = 2 };
enum simgpu_fault_kind { SIMGPU_FAULT_XID = 1, SIMGPU_FAULT_ECC_SINGLE = 2, SIMGPU_FAULT_ECC_DOUBLE = 3 };

/* One piece of queued work. The owner writes the first part and then publishes it; the engine writes the rest. */
struct simgpu_entry {
    uint64_t enqueue_ns;
    uint64_t duration_ns;
    uint64_t queued_ns; /* durations of all entries of this context up to and with this one */
    uint32_t kind;
    uint32_t stream;
    uint64_t begin_ns; /* 0: not begun */
    uint64_t end_ns;
};

/* Of an entry where engines overlap: what it is behind, and how far it is. Numbers are distances: so many entries before
 * this one; 0: none. The owner writes the first part, the engine the rest. */
struct simgpu_order {
    uint32_t behind; /* the one before it in its stream */
    uint32_t waits;  /* one more, of another stream */
    uint32_t place;
    uint32_t scope;
    uint32_t state;
    uint32_t unused;
    uint64_t due_ns; /* of the context's own time, `ran_ns` */
};

struct simgpu_orders {
    struct simgpu_order orders[4096];
};

struct simgpu_context {
    uint32_t state;
    uint32_t process; /* slot */
    uint64_t id;      /* never the same again on this machine */
    uint64_t memory_bytes;
    uint64_t overhead_bytes; /* what the context itself takes, in memory_bytes too */
    uint32_t error;          /* CUresult that every later call returns; 0: none */
    uint32_t unused;
    uint64_t limit;        /* a dying context runs entries up to here */
    uint64_t host_done;    /* host functions among the entries before this number have returned, */
    uint64_t host_done_ns; /* the last of them at this time */
    uint64_t tail;         /* entries published, by the owner alone */
    uint64_t padding[7];
    uint64_t completed; /* entries done, by the engine alone, like what follows */
    uint64_t head_done_ns;
    uint64_t completed_ns; /* durations of the entries done */
    uint64_t turn;         /* the least goes next in timeslice */
    uint64_t ran_ns;       /* where engines overlap: for so long it had the GPU and ran something */
    uint64_t padding2[3];
};

/* The last entries of one context; entry n lies at n modulo SIMGPU_RING. */
struct simgpu_ring {
    struct simgpu_entry entries[4096];
};

struct simgpu_process {
    uint32_t state;
    int32_t pid; /* as the process itself sees it */
    uint64_t id; /* never the same again on this machine */
    uint64_t start_ns;
    uint64_t end_ns; /* when its death was seen */
    char tag[32];
    char name[64];
    uint64_t executed_ns[16];  /* for each GPU */
    uint64_t entries[16];      /* finished, for each GPU */
    uint64_t events[16];       /* recorded, for each GPU; those of graphs not */
    uint64_t memory_bytes[16]; /* of each GPU: what belongs to no context, and no export */
};

struct simgpu_holder {
    uint32_t process; /* slot */
    uint32_t count;   /* 0: nobody */
};

/* What one process made and others may hold too; it is over when nobody holds it. */
struct simgpu_export {
    uint32_t kind;
    uint32_t gpu;
    uint64_t id;      /* never the same again on this machine */
    uint64_t bytes;   /* of the GPU's memory */
    uint32_t charged; /* slot of the process that they count for: the maker, and once that is gone another holder */
    uint32_t context; /* an event: recorded in this one, */
    uint64_t context_id;
    uint64_t after; /* done when that has completed so many entries; 0: not recorded */
    struct simgpu_holder holders[32];
};

struct simgpu_log_entry {
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t process; /* id */
    uint64_t entry;   /* number within its context */
    uint32_t slot;
    uint32_t context;
    uint32_t stream;
    uint16_t kind;
    uint16_t last; /* 1: the entry is done with this interval */
};

struct simgpu_fault {
    uint64_t time_ns;
    uint32_t kind;
    uint32_t xid;
};

/* What one step of the engine writes, as absolute values: written down before it is done, so that who finds the lock
 * of a dead process can do it again. */
struct simgpu_step {
    uint32_t valid;
    int32_t context; /* whose values follow; -1: none */
    int32_t running;
    uint32_t writes_entry; /* 1: the entry ring_number gets begin_ns and end_ns */
    uint32_t order_state;  /* of the entry, where engines overlap */
    uint32_t free_context; /* 1: the context is over */
    uint64_t loaded;
    uint64_t switched_ns;
    uint64_t time_ns;
    uint64_t turn_end_ns;
    uint64_t segment_begin_ns;
    uint64_t turns;
    uint64_t busy_ns;
    uint64_t completed;
    uint64_t head_done_ns;
    uint64_t completed_ns;
    uint64_t turn;
    uint64_t limit;
    uint64_t ring_number;
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t executed_ns;
    uint64_t entries;
    uint64_t due_ns; /* of the entry, and the context's; where engines overlap */
    uint64_t ran_ns;
    uint64_t log_count;
    struct simgpu_log_entry log; /* entry log_count - 1, where log_count has grown */
};

struct simgpu_gpu {
    struct simgpu_model model;
    char uuid[48]; /* "GPU-" and 36 characters */
    uint32_t pci_domain;
    uint32_t pci_bus;
    uint32_t pci_device;
    uint32_t lost;
    uint64_t ecc_single;
    uint64_t ecc_double;
    uint64_t fault_count;
    struct simgpu_fault faults[64];
    uint32_t temperature_c; /* set by a fault; 0: what the load makes it */
    uint32_t remapped_rows; /* of its memory, done */
    uint32_t remap_pending; /* 1: a row waits for a reset to be remapped */
    uint32_t remap_failed;  /* 1: once it could not be done */
    uint64_t reset_ns;      /* when it was reset last, or made; and what it had counted then: */
    uint64_t reset_busy_ns;
    uint64_t reset_ecc_single;
    uint64_t reset_ecc_double;
    uint32_t silent; /* 1: calls about it do not come back, until this is 0 */
    uint32_t silent_padding;
    uint64_t padding1[3];
    uint32_t lock;
    uint32_t recoveries;     /* times that a dead holder's lock was taken over */
    uint64_t detached_bytes; /* memory of processes and exports on this GPU */
    uint64_t padding2[6];
    uint64_t time_ns; /* the simulation has come this far */
    uint64_t turn_end_ns;
    uint64_t segment_begin_ns; /* of the interval that runs now */
    uint64_t turns;
    uint64_t busy_ns;
    uint64_t log_count; /* intervals ever logged: entry n lies at n modulo SIMGPU_LOG */
    int32_t running;    /* context; -1: none */
    uint32_t unused;
    struct simgpu_step step;
    uint64_t live[4];      /* a bit for each context that is not free (and perhaps a few more) */
    uint64_t loaded;       /* id of the context that ran last, or is being switched to; 0: none yet */
    uint64_t switched_ns;  /* a switch between contexts is over at this time: until then nothing runs */
    uint64_t switch_ns;    /* how long one takes, by the machine's pace */
    uint64_t orders_bytes; /* from here on to its struct simgpu_orders, one a context; 0: engines do not overlap */
    uint64_t padding3[4];
    struct simgpu_context contexts[256];
    struct simgpu_ring rings[256];
    struct simgpu_log_entry log[131072];
};

struct simgpu_machine {
    char magic[8];
    uint32_t version;
    uint32_t gpu_count;
    uint64_t size_bytes;
    uint32_t scheduling;
    uint32_t cuda_version; /* 12040: CUDA 12.4 */
    char driver_version[32];
    uint64_t created_ns;
    uint32_t lock; /* for process slots */
    uint32_t recoveries;
    uint64_t last_id;      /* of processes and contexts */
    uint64_t last_reap_ns; /* when somebody last looked for dead processes */
    uint32_t faults;       /* injected in all GPUs: a futex that waiters for events sleep on */
    uint32_t slots;        /* of `processes`, ever used */
    uint32_t export_slots; /* of `exports` */
    uint32_t overlap;      /* 1: engines do */
    struct simgpu_pace pace;
    uint64_t padding[2];
    struct simgpu_nvml nvml;
    struct simgpu_process processes[1024];
    struct simgpu_export exports[1024]; /* under `lock`; what they take of a GPU's memory under that GPU's too */
    struct simgpu_gpu gpus[];
};
