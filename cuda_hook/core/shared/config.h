#ifndef EDGESHARE_CORE_CONFIG_H
#define EDGESHARE_CORE_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "wire_checks.h"

enum {
    ES_CONFIG_GRACE_MS = 5000,  /* what holds when nobody says otherwise */
    ES_CONFIG_BYTES_MAX = 4096, /* no config is longer */
};

/* What a client must know when the manager is away. */
struct es_config {
    uint32_t failure_policy;                             /* es_failure_policy */
    uint32_t grace_ms;                                   /* how long to wait for a manager that went away */
    uint64_t memory_cap_bytes;                           /* 0: none known */
    uint8_t device_uuids[ES_DEVICES_MAX][ES_UUID_BYTES]; /* as in the gate page; zero: unknown */
};

/* Reads "name=value" lines (failure-policy, grace-ms, memory-cap-bytes; device-uuids: hexadecimal digits alone, a comma
 * between two) over the defaults. Lines that it does not understand change nothing; returns how many those were. */
int es_config_parse(const char *text, size_t bytes, struct es_config *config);

#endif
