#ifndef EDGESHARE_CORE_RECORD_H
#define EDGESHARE_CORE_RECORD_H

#include "wire_checks.h"

/* No device has more memory than this (4 PiB): a larger figure is a lie or an overflow. Sums of two thousand such amounts are
 * within their type. */
#define ES_MEMORY_BYTES_MAX (UINT64_C(1) << 52)

/* Why a packet is no record. Negative, so that a good packet can be answered with its kind. */
enum es_malformed {
    ES_MALFORMED_SHORT = -1,  /* not even a header */
    ES_MALFORMED_SENDER = -2, /* no kind that this side sends */
    ES_MALFORMED_SIZE = -3,   /* not the size of its kind, or not the size that its header claims */
    ES_MALFORMED_FIELD = -4,  /* a field holds what it never can */
};

enum es_sender { ES_SENDER_NOBODY, ES_SENDER_CLIENT, ES_SENDER_MANAGER };

/* Of a kind (records.def): who sends it; its structure's name in wire.h, or NULL for a kind that does not exist. */
int es_record_sender(unsigned int kind);
const char *es_record_struct(unsigned int kind);

/* The size of a record of this kind in bytes; 0 for a kind that does not exist. */
size_t es_record_bytes(unsigned int kind);

/* Checks a packet that a client sent: its kind (es_kind), or an es_malformed. The packet needs no alignment. */
int es_check_from_client(const void *packet, size_t bytes);

/* Checks a packet that the manager sent, likewise. */
int es_check_from_manager(const void *packet, size_t bytes);

/* Why, in words for a log; never NULL. */
const char *es_malformed_text(int malformed);

#endif
