/* The wire between a client (one hooked process) and the node's manager.
 *
 * Transport: one SOCK_SEQPACKET Unix socket per allocation; a record is one packet. Which socket a client reached says
 * whose it is, so no record carries an identity. Every record begins with struct es_header; all integers are
 * little-endian and naturally aligned. Kinds and reasons are never renumbered.
 *
 * Only enums and structs stand here: C includes this file through wire_checks.h (guards and size assertions), and
 * Python reads the very same text through cffi.
 *
 * The order of records: the client says HELLO; the manager answers WELCOME, which carries memfds (SCM_RIGHTS: first the
 * gate page, then the hint page, and since version 2 the siblings page), or REFUSED. Where it cannot pass them just now it
 * says WAIT before, about ten times a second, as long as the client reads that (to one that speaks version 3). From the WELCOME
 * on the manager sends a record only as the answer to RESERVE and MEMORY_QUERY; grants and revokes are written into the gate
 * page, whose word is also a futex. A RELEASE that nobody waits for may be left in the hint page.
 *
 * Memory: what a client holds of a device is what was granted to it by RESERVED, by a top-up of its allowance word (in
 * the hint page), or declared; less what it gave back by FREED and what the manager took back out of the word. The word
 * says how much of that the client does not use just now: it takes from it before it asks the driver, and puts back what
 * the driver refused or freed. So most allocations and frees need no record at all. */

enum es_protocol {
    ES_VERSION = 3,            /* the newest; HELLO carries the range a client speaks, WELCOME the highest of both sides */
    ES_VERSION_MIN = 1,        /* the oldest that is still spoken: without what follows device_uuids and allowance_bytes */
    ES_RECORD_BYTES_MAX = 128, /* no record is longer; a longer packet is malformed */
    ES_PAGE_BYTES = 4096,      /* size of each page */
    ES_TEXT_BYTES = 96,
    ES_DEVICES_MAX = 16, /* devices of one allocation that have an allowance word and a UUID in the pages */
    ES_UUID_BYTES = 16,
    ES_SIBLINGS_MAX = 1022, /* clients of one allocation that have a place in its siblings page */
};

enum es_kind {
    ES_HELLO = 1,         /* client → manager: es_hello */
    ES_WELCOME = 2,       /* manager → client: es_welcome, with file descriptors */
    ES_REFUSED = 3,       /* manager → client: es_refused, then the connection ends */
    ES_REQUEST = 4,       /* client → manager: es_request: a launch is waiting at the closed gate */
    ES_RELEASE = 5,       /* client → manager: es_release: drained, answers grant `number` */
    ES_USAGE = 6,         /* client → manager: es_usage: GPU time while a grant lasts on */
    ES_RESERVE = 7,       /* client → manager: es_reserve: may this much device memory be taken */
    ES_RESERVED = 8,      /* manager → client: es_reserved: the verdict, repeats the RESERVE's number */
    ES_KIND_9 = 9,        /* retired: COMMIT; a granted reservation is held at once */
    ES_KIND_10 = 10,      /* retired: CANCEL; what the driver refused goes into the allowance word */
    ES_FREED = 11,        /* client → manager: es_memory: `bytes` are held no more */
    ES_MEMORY_QUERY = 12, /* client → manager: es_memory_query */
    ES_MEMORY_INFO = 13,  /* manager → client: es_memory_info, repeats the query's number */
    ES_DRAINING = 14,     /* client → manager: es_draining: grant `number` was called back, this is when it will drain */
    ES_DECLARE = 15,      /* client → manager: es_memory: `bytes` are held that no manager of this life granted */
    ES_WAIT = 16,         /* manager → client: es_wait; since version 3 */
};

enum es_accelerator {
    ES_ACCELERATOR_GPU = 1,
    ES_ACCELERATOR_EDGETPU = 2,
};

enum es_failure_policy {
    ES_FAIL_OPEN = 0,   /* manager away: run on unshared after the grace time */
    ES_FAIL_CLOSED = 1, /* manager away: launch nothing more after the grace time */
};

enum es_refusal {
    ES_REFUSAL_VERSION = 1,     /* no version in common */
    ES_REFUSAL_ACCELERATOR = 2, /* the allocation is of another kind of device */
    ES_REFUSAL_FULL = 3,        /* the allocation has its maximum of clients */
    ES_REFUSAL_ENDED = 4,       /* the allocation is being removed */
};

enum es_memory_kind {
    ES_MEMORY_PLAIN = 1,   /* cuMemAlloc and its like */
    ES_MEMORY_CONTEXT = 2, /* one context; `bytes` is 0: the manager knows what the driver takes for one, from measuring */
};

enum es_welcome_flags {
    ES_WELCOME_IGNORE_MANAGED = 1, /* managed memory is not counted */
};

/* Bits of the gate's word. The rest of it, word >> ES_GATE_NUMBER_SHIFT, is the grant's number (never 0 in a grant). */
enum es_gate_bits {
    ES_GATE_HELD = 1,      /* launches may pass */
    ES_GATE_CONTENDED = 2, /* somebody else has work: keep queued work within queue_cap_ns */
    ES_GATE_NUMBER_SHIFT = 2,
};

/* How a grant is held beside others. They may change while the grant's number stays. */
enum es_beside_flags {
    ES_BESIDE_OTHERS = 1, /* others' gates may be open, too, or what they have queued may still run */
    ES_BESIDE_TELLS = 2,  /* once drained the grant is given back as in turns; else, beside others, as without a rival */
};

enum es_release_flags {
    ES_RELEASE_FOLLOWS = 1, /* a launch is already waiting at the gate: as good as a REQUEST */
};

struct es_header {
    uint16_t kind;
    uint16_t size;   /* of the whole record, this header included */
    uint32_t number; /* grant number, or the number of a memory request; 0 where there is none */
};

struct es_release {
    struct es_header header; /* number: of the grant */
    uint64_t gpu_ns;         /* GPU time since the grant or the last USAGE */
    uint32_t flags;          /* es_release_flags */
    uint32_t reserved;
};

/* First bytes of the gate page: written by the manager alone, mapped read-only by the client. */
struct es_gate_page {
    uint32_t word;          /* es_gate_bits and the grant's number; a futex */
    uint32_t epoch;         /* the manager's life; another one than in WELCOME means the page is dead (0: discarded) */
    uint64_t granted_at_ns; /* CLOCK_MONOTONIC of the grant in `word` */
    uint64_t free_at_ns;    /* CLOCK_MONOTONIC: when what others queued before it is done, as far as is known: launch then */
    uint64_t ends_at_ns;    /* CLOCK_MONOTONIC: before this the grant is not called back, and may be prolonged; 0: unknown */
    uint64_t looks_at_ns;   /* CLOCK_MONOTONIC: then the manager looks at the hint page by itself; 0: it does not */
    uint8_t device_uuids[ES_DEVICES_MAX][ES_UUID_BYTES]; /* of the allocation's devices, in their order; zero: unknown */
    /* Since version 2. */
    uint32_t beside; /* es_beside_flags */
    uint32_t cap_ns; /* most GPU time to keep queued while contended; 0: queue_cap_ns of WELCOME */
    uint32_t place;  /* this client's in the siblings page; ES_SIBLINGS_MAX: it has none */
    uint32_t unused;
};

/* What a client says of its use of the device, and of the time in which it wanted none. Counters begin with the page. */
struct es_used {
    uint64_t gpu_ns;         /* GPU time of all that has ended: never falls */
    uint64_t drained_gpu_ns; /* the same when last nothing was queued */
    uint64_t idle_ns;        /* time with nothing queued and no launch at the gate, in spells that are over; and between kernels
                              * that were queued one behind the other, where the host takes longer to submit them */
    uint64_t idle_since_ns;  /* CLOCK_MONOTONIC: since when such a spell lasts; 0: none does */
    uint64_t pending_ns;     /* what of the work that was submitted is not in gpu_ns yet, by its estimates */
    uint32_t queued;         /* something was submitted that was not seen to have ended */
    uint32_t waits;          /* a launch is at the closed gate */
};

/* The siblings page: all clients of an allocation write it, so that only these can be misled by it. */
struct es_siblings_page {
    uint32_t places;                 /* one more than the last that ever was taken; written by the manager, as the next one is */
    uint32_t nameless;               /* clients that have none */
    uint32_t turns[ES_SIBLINGS_MAX]; /* of the client in each place: odd while it uses the device */
};

/* First bytes of the hint page: written by the client, read by the manager, believed by nobody. */
struct es_hint_page {
    uint64_t backlog_ns;      /* GPU time that the client thinks it has queued */
    uint64_t launches;        /* submissions so far */
    uint32_t waiting_threads; /* threads at the closed gate */
    uint32_t hand_over_ns;    /* usually from when the device falls free to the begin of this client's work; 0: unknown */
    uint64_t ends_at_ns;      /* CLOCK_MONOTONIC: when what is queued is done, as far as the client can tell; 0: unknown */
    /* A RELEASE that is not sent, since the manager looks here in time (looks_at_ns); its number is written last. */
    struct es_release left;
    uint64_t drained_at_ns; /* CLOCK_MONOTONIC: when it was left */
    /* What follows is written by other threads than what is above: another cache line. */
    uint64_t allowance_bytes[ES_DEVICES_MAX]; /* of each device: held and not in use; changed by atomic operations alone */
    struct es_used used; /* since version 2; read at other times than all that is above: another cache line again */
};

struct es_hello {
    struct es_header header;
    uint16_t version_min;
    uint16_t version_max;
    uint16_t accelerator; /* es_accelerator */
    uint16_t reserved;
};

struct es_welcome {
    struct es_header header;
    uint16_t version;
    uint16_t failure_policy;   /* es_failure_policy */
    uint32_t grace_ms;         /* how long a client waits for a manager that went away */
    uint32_t epoch;            /* the manager's life */
    uint32_t queue_cap_ns;     /* most GPU time to keep queued while contended (Q) */
    uint32_t anticipation_ns;  /* longest think time for which a drained client keeps its turn (A) */
    uint32_t flags;            /* es_welcome_flags */
    uint64_t memory_cap_bytes; /* for each device of the allocation */
};

/* The client is known and its WELCOME is still to come: it waits for that however long it takes, and for a manager that says
 * neither any more as for one that went away. */
struct es_wait {
    struct es_header header;
};

/* The client is not taken in, and may ask again over another connection. A manager that refuses lives: the client waits for it
 * no differently than at es_wait. */
struct es_refused {
    struct es_header header;
    uint16_t reason; /* es_refusal */
    uint16_t reserved[3];
    char text[ES_TEXT_BYTES]; /* UTF-8, zero-terminated */
};

struct es_request {
    struct es_header header;
};

/* Not owed: corrects what the hint page said at the revoke, and so what the next client is told (free_at_ns). */
struct es_draining {
    struct es_header header; /* number: of the grant */
    uint64_t ends_at_ns;     /* as in the hint page */
    uint64_t reserved;
};

struct es_usage {
    struct es_header header; /* number: of the grant */
    uint64_t gpu_ns;         /* GPU time since the grant or the last USAGE */
};

struct es_reserve {
    struct es_header header; /* number: chosen by the client, not in use */
    uint64_t bytes;
    uint32_t device; /* index of the device within the allocation */
    uint32_t kind;   /* es_memory_kind */
};

struct es_reserved {
    struct es_header header;
    uint64_t free_bytes; /* under the cap, before this reservation; all allowances of others included when it was refused */
    uint32_t granted;    /* 1 or 0 */
    uint32_t reserved;
};

/* FREED and DECLARE; the number is 0. */
struct es_memory {
    struct es_header header;
    uint64_t bytes; /* 0 for a context */
    uint32_t device;
    uint32_t kind; /* es_memory_kind */
};

struct es_memory_query {
    struct es_header header;
    uint32_t device;
    uint32_t reserved;
};

struct es_memory_info {
    struct es_header header;
    uint64_t cap_bytes;
    uint64_t used_bytes; /* of the whole allocation: held, less what stands in its clients' allowance words */
};
