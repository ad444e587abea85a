#include "workload/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
    "burn: runs kernels of a given length on a GPU and says what it ran.\n"
    "  --seconds S            how long (default 5)\n"
    "  --kernel-us U[:W],...  lengths of kernels, each with a weight (default 1000) and a function of its own\n"
    "  --graph N              launches graphs of N such kernels\n"
    "  --mode async           keeps the queue full, the driver's bound holds it back (default)\n"
    "         sync            launches one kernel and waits for it\n"
    "         think           the same, and then thinks\n"
    "         request         the same, and begins the next at a fixed time; prints how long each took\n"
    "  --think-us T           how long it thinks, in mode think (default 100)\n"
    "  --period-us T          in mode request one begins each T (default 50000), or when the one before is done\n"
    "  --requests N           in mode request it ends after N of them\n"
    "  --sync-every N         waits after N launches (default: in mode async never, else 1)\n"
    "  --streams N            spreads launches over N streams (default 0: the default stream)\n"
    "  --grid N               blocks of a launch (default 1)\n"
    "  --alloc-mib M          allocates so much first\n"
    "  --device N             ordinal (default 0)\n"
    "  --start-when-told      says 'ready', and begins at the CLOCK_MONOTONIC time, in ns, that its standard input says then\n"
    "  --idle-from S --idle-until S   submits nothing between\n"
    "  --door linked|dlopen|getproc   how the driver's functions are found (default linked)\n"
    "  --launches N           timing: N launches with room in the queue; prints the median ns of one\n"
    "  --json                 the summary as JSON\n";

enum name {
    SECONDS = 1,
    KERNEL_US,
    MODE,
    THINK_US,
    PERIOD_US,
    REQUESTS,
    GRAPH,
    SYNC_EVERY,
    STREAM_COUNT,
    GRID,
    ALLOC_MIB,
    DEVICE,
    START_WHEN_TOLD,
    IDLE_FROM,
    IDLE_UNTIL,
    DOOR,
    LAUNCHES,
    JSON,
    HELP_ME
};

static const struct option NAMES[] = {
    {"seconds", required_argument, NULL, SECONDS},
    {"kernel-us", required_argument, NULL, KERNEL_US},
    {"mode", required_argument, NULL, MODE},
    {"think-us", required_argument, NULL, THINK_US},
    {"period-us", required_argument, NULL, PERIOD_US},
    {"requests", required_argument, NULL, REQUESTS},
    {"graph", required_argument, NULL, GRAPH},
    {"sync-every", required_argument, NULL, SYNC_EVERY},
    {"streams", required_argument, NULL, STREAM_COUNT},
    {"grid", required_argument, NULL, GRID},
    {"alloc-mib", required_argument, NULL, ALLOC_MIB},
    {"device", required_argument, NULL, DEVICE},
    {"start-when-told", no_argument, NULL, START_WHEN_TOLD},
    {"idle-from", required_argument, NULL, IDLE_FROM},
    {"idle-until", required_argument, NULL, IDLE_UNTIL},
    {"door", required_argument, NULL, DOOR},
    {"launches", required_argument, NULL, LAUNCHES},
    {"json", no_argument, NULL, JSON},
    {"help", no_argument, NULL, HELP_ME},
    {NULL, 0, NULL, 0},
};

/* A number from 0 to `most`; -1: it is none. */
static double number(const char *text, double most, char **end) {
    double value = strtod(text, end);
    return *end == text || !(value >= 0) || value > most ? -1 : value;
}

static bool read_kernels(const char *text, struct options *options) {
    options->kernels = 0;
    for (;;) {
        char *end;
        double length_us = number(text, 3.6e9, &end);
        if (length_us < 0 || options->kernels == KERNELS)
            return false;
        unsigned long weight = 1;
        if (*end == ':') {
            text = end + 1;
            weight = strtoul(text, &end, 10);
            if (end == text || weight == 0 || weight > 1000000)
                return false;
        }
        options->kernel_ns[options->kernels] = (uint64_t)(length_us * 1000);
        options->weight[options->kernels++] = (unsigned int)weight;
        if (*end == 0)
            return true;
        if (*end != ',')
            return false;
        text = end + 1;
    }
}

static bool read_mode(const char *text, enum mode *mode) {
    static const char *const MODES[] = {"async", "sync", "think", "request"};
    for (int index = 0; index < 4; index++) {
        if (strcmp(text, MODES[index]) == 0) {
            *mode = (enum mode)index;
            return true;
        }
    }
    return false;
}

static bool read_option(int name, const char *text, struct options *options) {
    char *end = "";
    double value = -1;
    switch ((enum name)name) {
    case SECONDS: options->seconds = value = number(text, 1e6, &end); break;
    case KERNEL_US: return read_kernels(text, options);
    case MODE: return read_mode(text, &options->mode);
    case THINK_US: options->think_ns = (uint64_t)((value = number(text, 1e9, &end)) * 1000); break;
    case PERIOD_US: options->period_ns = (uint64_t)((value = number(text, 1e9, &end)) * 1000); break;
    case REQUESTS: options->requests = (uint64_t)(value = number(text, 1e9, &end)); break;
    case GRAPH: options->graph = (int)(value = number(text, GRAPH_KERNELS, &end)); break;
    case SYNC_EVERY: options->sync_every = (uint64_t)(value = number(text, 1e9, &end)); break;
    case STREAM_COUNT: options->streams = (int)(value = number(text, STREAMS, &end)); break;
    case GRID: options->grid = (unsigned int)(value = number(text, 1e9, &end)); break;
    case ALLOC_MIB: options->alloc_bytes = (uint64_t)((value = number(text, 1e9, &end)) * 1048576); break;
    case DEVICE: options->device = (int)(value = number(text, 1000, &end)); break;
    case START_WHEN_TOLD: options->told = true; return true;
    case IDLE_FROM: options->idle_from = value = number(text, 1e6, &end); break;
    case IDLE_UNTIL: options->idle_until = value = number(text, 1e6, &end); break;
    case DOOR: options->door = text; return true;
    case LAUNCHES: options->launches = (uint64_t)(value = number(text, 1e7, &end)); break;
    case JSON: options->json = true; return true;
    case HELP_ME: return true;
    }
    return value >= 0 && *end == 0;
}

int read_options(int argc, char **argv, struct options *options, bool *done) {
    bool given[HELP_ME + 1] = {false};
    *options = (struct options){.seconds = 5,
                                .kernels = 1,
                                .kernel_ns = {1000000},
                                .weight = {1},
                                .think_ns = 100000,
                                .period_ns = 50000000,
                                .door = "linked",
                                .grid = 1};
    *done = true;
    for (;;) {
        int place = 0;
        int name = getopt_long(argc, argv, "", NAMES, &place);
        if (name == -1)
            break;
        if (name == '?')
            return 2;
        if (name == HELP_ME) {
            fputs(HELP, stdout);
            return 0;
        }
        if (!read_option(name, optarg, options)) {
            fprintf(stderr, "burn: --%s cannot be %s: see --help\n", NAMES[place].name, optarg);
            return 2;
        }
        given[name] = true;
    }
    if ((given[THINK_US] && options->mode != MODE_THINK) ||
        ((given[PERIOD_US] || given[REQUESTS]) && options->mode != MODE_REQUEST)) {
        fprintf(stderr, "burn: --think-us is for --mode think alone, --period-us and --requests for --mode request\n");
        return 2;
    }
    if (optind < argc) {
        fprintf(stderr, "burn: %s is no option: see --help\n", argv[optind]);
        return 2;
    }
    *done = false;
    return 0;
}
