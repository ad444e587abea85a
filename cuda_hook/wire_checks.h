#ifndef EDGESHARE_WIRE_CHECKS_H
#define EDGESHARE_WIRE_CHECKS_H

/* The way C includes wire.h: guards, and the sizes that both sides rely on. */

#include <stddef.h>
#include <stdint.h>

#include "wire.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are little-endian");
_Static_assert(sizeof(struct es_header) == 8, "es_header");
_Static_assert(sizeof(struct es_hello) == 16, "es_hello");
_Static_assert(sizeof(struct es_welcome) == 40, "es_welcome");
_Static_assert(sizeof(struct es_wait) == 8, "es_wait");
_Static_assert(sizeof(struct es_refused) == 112, "es_refused");
_Static_assert(sizeof(struct es_request) == 8, "es_request");
_Static_assert(sizeof(struct es_release) == 24, "es_release");
_Static_assert(sizeof(struct es_draining) == 24, "es_draining");
_Static_assert(sizeof(struct es_usage) == 16, "es_usage");
_Static_assert(sizeof(struct es_reserve) == 24, "es_reserve");
_Static_assert(sizeof(struct es_reserved) == 24, "es_reserved");
_Static_assert(sizeof(struct es_memory) == 24, "es_memory");
_Static_assert(sizeof(struct es_memory_query) == 16, "es_memory_query");
_Static_assert(sizeof(struct es_memory_info) == 24, "es_memory_info");
_Static_assert(sizeof(struct es_refused) <= ES_RECORD_BYTES_MAX, "ES_RECORD_BYTES_MAX");
_Static_assert(offsetof(struct es_gate_page, beside) == 40 + ES_DEVICES_MAX * ES_UUID_BYTES, "es_gate_page of version 1");
_Static_assert(sizeof(struct es_gate_page) == 40 + ES_DEVICES_MAX * ES_UUID_BYTES + 16, "es_gate_page");
_Static_assert(sizeof(struct es_siblings_page) == ES_PAGE_BYTES, "es_siblings_page");
_Static_assert(sizeof(struct es_used) == 48, "es_used");
_Static_assert(offsetof(struct es_hint_page, allowance_bytes) == 64, "es_hint_page: a cache line of their own");
_Static_assert(offsetof(struct es_hint_page, used) == 64 + ES_DEVICES_MAX * 8, "es_hint_page of version 1");
_Static_assert(offsetof(struct es_hint_page, used) % 64 == 0, "es_hint_page: a cache line of its own");
_Static_assert(sizeof(struct es_hint_page) == 64 + ES_DEVICES_MAX * 8 + sizeof(struct es_used), "es_hint_page");
_Static_assert(offsetof(struct es_gate_page, word) == 0, "the futex word comes first");

#endif
