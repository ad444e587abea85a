/* A device, the programs that submit to it, and the gate of each, on simulated time: what C and Python share.
 * Times are ns since the run began. Only enums, structs and prototypes stand here, since cffi reads this very text. */

enum sim_limits { SIM_PROGRAMS_MAX = 32, SIM_BACKLOG_MAX = 1024, SIM_ANSWERS_MAX = 2048 };

enum sim_event {
    SIM_LOOK = 0,    /* the time has come that the manager asked for */
    SIM_REQUEST = 1, /* a launch waits at the closed gate */
    SIM_RELEASE = 2, /* drained: the gate was closed, or nothing has come for as long as the client waits for itself */
};

struct sim_program {
    int64_t kernel_ns;
    int64_t batch;             /* kernels between two waits for the result; 0: it never waits */
    int64_t think_ns;          /* on the host, after the result */
    int64_t period_ns;         /* instead of think_ns: the next batch begins at a multiple of this */
    int64_t reported_permille; /* of its GPU time: an honest one says 1000 */
    int64_t feigns;            /* 1: it says that it thought while it did not say it worked, and drained just now */
};

/* What the client's page says, as the manager reads it; sums since the run began. */
struct sim_page {
    int64_t gpu_ns;       /* GPU time by the learned cost of a kernel */
    int64_t undrained_ns; /* the part of it since the client last had nothing queued */
    int64_t idle_ns;      /* time with nothing queued that was not spent at the gate */
    int64_t waits;        /* 1: a launch waits at the gate */
    int64_t queued;       /* kernels that have not ended */
};

/* What the manager wants of a gate. */
struct sim_gate {
    int64_t open;
    int64_t cap_ns; /* a launch passes while no more than this is queued */
    int64_t tells;  /* 1: a release is owed for each opening; 0: only for what is queued when the gate is closed */
};

struct sim_outcome {
    int64_t executed_ns;                 /* since the settling time */
    int64_t longest_wait_ns;             /* at the gate, of waits begun within the guarantee after the settling time */
    int64_t answers;                     /* batches begun since the settling time and done, as many as there is room for … */
    int64_t answers_ns[SIM_ANSWERS_MAX]; /* … and how long each took, from the end of thinking to the result */
};

struct sim_config {
    uint64_t seed;
    int64_t run_ns;
    int64_t settle_ns;
    int64_t gated;           /* 0: no gate and no cap */
    int64_t timeslice;       /* 0: in the order of submission */
    int64_t switch_ns;       /* from one process's context to another's, where it is by time slices */
    int64_t anticipation_ns; /* how long a client waits for itself before it gives its turn back */
};

/* Runs it. `decide` is told what happened and when, and returns when it wants to be told SIM_LOOK next; before, it
 * changes the gates as it likes. By then the pages are written, and in `busy_ns` for how long the device has run each
 * program and, last, any of them, as its driver says. Request of each program in hundredths. Returns how often `decide` was called, or -1 where there are
 * too many programs. */
int64_t sim_run(const struct sim_config *config, const struct sim_program *programs, const int64_t *request_percent, int count,
                int64_t (*decide)(int event, int program, int64_t now_ns), struct sim_page *pages, struct sim_gate *gates,
                struct sim_outcome *outcomes, int64_t *busy_ns);
