#include "core/shared/record.h"

#include <string.h>

/* 146 years after the boot; keeps sums of times within their type. */
static const uint64_t CLOCK_NS_MAX = UINT64_C(1) << 62;
/* A century: more GPU time than any grant can have lasted. */
static const uint64_t GPU_NS_MAX = UINT64_C(3155760000) * UINT64_C(1000000000);

static int memory_kind_ok(uint32_t kind) { return kind == ES_MEMORY_PLAIN || kind == ES_MEMORY_CONTEXT; }

/* An aligned copy of any record. */
union any_record {
    struct es_header header;
#define ES_RECORD(kind, tag, sender, holds) struct es_##tag kind;
#include "records.def"
#undef ES_RECORD
};

/* May the fields be believed? One function for each kind, all called alike. */
#define ES_RECORD(kind, tag, sender, holds)                               \
    static int kind##_holds(const struct es_##tag *it, uint32_t number) { \
        (void)it;                                                         \
        (void)number;                                                     \
        return holds;                                                     \
    }
#include "records.def"
#undef ES_RECORD

size_t es_record_bytes(unsigned int kind) {
    switch (kind) {
#define ES_RECORD(kind, tag, sender, holds) \
    case ES_##kind: return sizeof(struct es_##tag);
#include "records.def"
#undef ES_RECORD
    default: return 0;
    }
}

const char *es_record_struct(unsigned int kind) {
    switch (kind) {
#define ES_RECORD(kind, tag, sender, holds) \
    case ES_##kind: return "struct es_" #tag;
#include "records.def"
#undef ES_RECORD
    default: return NULL;
    }
}

int es_record_sender(unsigned int kind) {
    switch (kind) {
#define ES_RECORD(kind, tag, sender, holds) \
    case ES_##kind: return ES_SENDER_##sender;
#include "records.def"
#undef ES_RECORD
    default: return ES_SENDER_NOBODY;
    }
}

static int fields_hold(const union any_record *record) {
    switch (record->header.kind) {
#define ES_RECORD(kind, tag, sender, holds) \
    case ES_##kind: return kind##_holds(&record->kind, record->header.number);
#include "records.def"
#undef ES_RECORD
    default: return 0;
    }
}

static int check(const void *packet, size_t bytes, enum es_sender sender) {
    union any_record record;

    if (bytes < sizeof(struct es_header))
        return ES_MALFORMED_SHORT;
    memcpy(&record.header, packet, sizeof(record.header));
    if (es_record_sender(record.header.kind) != (int)sender)
        return ES_MALFORMED_SENDER;
    if (record.header.size != bytes || bytes != es_record_bytes(record.header.kind))
        return ES_MALFORMED_SIZE;
    memcpy(&record, packet, bytes);
    return fields_hold(&record) ? (int)record.header.kind : ES_MALFORMED_FIELD;
}

int es_check_from_client(const void *packet, size_t bytes) { return check(packet, bytes, ES_SENDER_CLIENT); }

int es_check_from_manager(const void *packet, size_t bytes) { return check(packet, bytes, ES_SENDER_MANAGER); }

const char *es_malformed_text(int malformed) {
    switch (malformed) {
    case ES_MALFORMED_SHORT: return "shorter than a record's header";
    case ES_MALFORMED_SENDER: return "not of a kind that this side sends";
    case ES_MALFORMED_SIZE: return "not of the size of its kind";
    case ES_MALFORMED_FIELD: return "a field holds an impossible value";
    default: return "well formed";
    }
}
