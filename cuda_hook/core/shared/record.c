#include "core/shared/record.h"

#include <string.h>

/* No device has more memory than this (4 PiB): a larger figure is a lie or an overflow. */
static const uint64_t MEMORY_BYTES_MAX = UINT64_C(1) << 52;
/* 146 years after the boot; keeps sums of times within their type. */
static const uint64_t CLOCK_NS_MAX = UINT64_C(1) << 62;
/* A century: more GPU time than any grant can have lasted. */
static const uint64_t GPU_NS_MAX = UINT64_C(3155760000) * UINT64_C(1000000000);

size_t es_record_bytes(unsigned int kind)
{
    switch (kind) {
    case ES_HELLO:
        return sizeof(struct es_hello);
    case ES_WELCOME:
        return sizeof(struct es_welcome);
    case ES_REFUSED:
        return sizeof(struct es_refused);
    case ES_REQUEST:
        return sizeof(struct es_request);
    case ES_RELEASE:
        return sizeof(struct es_release);
    case ES_DRAINING:
        return sizeof(struct es_draining);
    case ES_USAGE:
        return sizeof(struct es_usage);
    case ES_RESERVE:
        return sizeof(struct es_reserve);
    case ES_RESERVED:
        return sizeof(struct es_reserved);
    case ES_FREED:
    case ES_DECLARE:
        return sizeof(struct es_memory);
    case ES_MEMORY_QUERY:
        return sizeof(struct es_memory_query);
    case ES_MEMORY_INFO:
        return sizeof(struct es_memory_info);
    default:
        return 0;
    }
}

static int from_client(unsigned int kind)
{
    return kind == ES_HELLO || kind == ES_REQUEST || kind == ES_RELEASE || kind == ES_DRAINING || kind == ES_USAGE ||
           kind == ES_RESERVE || kind == ES_FREED || kind == ES_DECLARE || kind == ES_MEMORY_QUERY;
}

static int from_manager(unsigned int kind)
{
    return kind == ES_WELCOME || kind == ES_REFUSED || kind == ES_RESERVED || kind == ES_MEMORY_INFO;
}

static int memory_kind_ok(uint32_t kind)
{
    return kind == ES_MEMORY_PLAIN || kind == ES_MEMORY_CONTEXT;
}

/* An aligned copy of any record. */
union any_record {
    struct es_header header;
    struct es_hello hello;
    struct es_welcome welcome;
    struct es_refused refused;
    struct es_release release;
    struct es_draining draining;
    struct es_usage usage;
    struct es_reserve reserve;
    struct es_reserved reserved;
    struct es_memory memory;
    struct es_memory_info memory_info;
};

static int fields_ok(const union any_record *record)
{
    const uint32_t number = record->header.number;

    switch (record->header.kind) {
    case ES_HELLO:
        return record->hello.version_min >= 1 && record->hello.version_min <= record->hello.version_max;
    case ES_WELCOME:
        return record->welcome.version >= 1 && record->welcome.failure_policy <= ES_FAIL_CLOSED &&
               record->welcome.epoch != 0 && record->welcome.memory_cap_bytes <= MEMORY_BYTES_MAX;
    case ES_REFUSED:
        return memchr(record->refused.text, 0, ES_TEXT_BYTES) != NULL;
    case ES_RELEASE:
        return number != 0 && record->release.gpu_ns <= GPU_NS_MAX;
    case ES_DRAINING:
        return number != 0 && record->draining.ends_at_ns <= CLOCK_NS_MAX;
    case ES_USAGE:
        return number != 0 && record->usage.gpu_ns <= GPU_NS_MAX;
    case ES_RESERVE:
        return number != 0 && record->reserve.bytes <= MEMORY_BYTES_MAX && memory_kind_ok(record->reserve.kind);
    case ES_RESERVED:
        return number != 0 && record->reserved.granted <= 1;
    case ES_FREED:
    case ES_DECLARE:
        return record->memory.bytes <= MEMORY_BYTES_MAX && memory_kind_ok(record->memory.kind);
    case ES_MEMORY_QUERY:
    case ES_MEMORY_INFO:
        return number != 0;
    default:
        return 1;
    }
}

static int check(const void *packet, size_t bytes, int (*sent_here)(unsigned int kind))
{
    union any_record record;

    if (bytes < sizeof(struct es_header))
        return ES_MALFORMED_SHORT;
    memcpy(&record.header, packet, sizeof(record.header));
    if (!sent_here(record.header.kind))
        return ES_MALFORMED_SENDER;
    if (record.header.size != bytes || bytes != es_record_bytes(record.header.kind))
        return ES_MALFORMED_SIZE;
    memcpy(&record, packet, bytes);
    return fields_ok(&record) ? (int)record.header.kind : ES_MALFORMED_FIELD;
}

int es_check_from_client(const void *packet, size_t bytes)
{
    return check(packet, bytes, from_client);
}

int es_check_from_manager(const void *packet, size_t bytes)
{
    return check(packet, bytes, from_manager);
}

const char *es_malformed_text(int malformed)
{
    switch (malformed) {
    case ES_MALFORMED_SHORT:
        return "shorter than a record's header";
    case ES_MALFORMED_SENDER:
        return "not of a kind that this side sends";
    case ES_MALFORMED_SIZE:
        return "not of the size of its kind";
    case ES_MALFORMED_FIELD:
        return "a field holds an impossible value";
    default:
        return "well formed";
    }
}
