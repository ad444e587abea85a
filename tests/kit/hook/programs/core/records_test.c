/* What crosses the socket and the pages: records, words, the file of settings. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

#include "core/shared/config.h"
#include "core/shared/gate_page.h"
#include "core/shared/record.h"

/* A packet in memory of exactly its size, so that a sanitizer sees a read beyond it. */
static int check_exactly(const void *packet, size_t bytes, int (*check)(const void *, size_t)) {
    unsigned char *copy = malloc(bytes != 0 ? bytes : 1);
    int kind;

    memcpy(copy, packet, bytes);
    kind = check(copy, bytes);
    free(copy);
    return kind;
}

static void records_are_checked(void) {
    unsigned char packet[256] = {0};
    uint32_t state = 1;

    for (unsigned int kind = 0; kind < 256; kind++) {
        for (size_t bytes = 0; bytes <= sizeof(packet); bytes++) {
            const struct es_header header = {(uint16_t)kind, (uint16_t)bytes, 1};
            int from_client, from_manager;

            memcpy(packet, &header, sizeof(header));
            from_client = check_exactly(packet, bytes, es_check_from_client);
            from_manager = check_exactly(packet, bytes, es_check_from_manager);
            CHECK(from_client < 0 || from_manager < 0);
            CHECK(from_client < 0 || bytes == es_record_bytes(kind));
            CHECK(from_manager < 0 || bytes == es_record_bytes(kind));
        }
    }
    for (int i = 0; i < 200000; i++) {
        size_t bytes;

        for (size_t at = 0; at < sizeof(packet); at++)
            packet[at] = (unsigned char)((state = state * 1664525 + 1013904223) >> 24);
        packet[0] %= 16;
        packet[1] = 0;
        bytes = es_record_bytes(packet[0]) != 0 ? es_record_bytes(packet[0]) : 7;
        packet[2] = (unsigned char)bytes;
        packet[3] = 0;
        (void)check_exactly(packet, bytes, es_check_from_client);
        (void)check_exactly(packet, bytes, es_check_from_manager);
    }
    for (int malformed = -6; malformed <= 0; malformed++)
        CHECK(es_malformed_text(malformed) != NULL);
}

static void fields_are_checked(void) {
    struct es_reserve reserve = {{ES_RESERVE, sizeof(reserve), 1}, 4096, 0, ES_MEMORY_PLAIN};
    struct es_welcome welcome = {{ES_WELCOME, sizeof(welcome), 0}, 1, ES_FAIL_CLOSED, 5000, 7, 1, 1, 0, 1};
    struct es_refused refused = {.header = {ES_REFUSED, sizeof(refused), 0}, .reason = 1};
    struct es_release release = {{ES_RELEASE, sizeof(release), 1}, 1, 0, 0};

    CHECK(es_check_from_client(&reserve, sizeof(reserve)) == ES_RESERVE);
    CHECK(es_check_from_manager(&reserve, sizeof(reserve)) == ES_MALFORMED_SENDER);
    reserve.bytes = UINT64_MAX;
    CHECK(es_check_from_client(&reserve, sizeof(reserve)) == ES_MALFORMED_FIELD);
    reserve.bytes = 0;
    reserve.kind = 9;
    CHECK(es_check_from_client(&reserve, sizeof(reserve)) == ES_MALFORMED_FIELD);
    CHECK(es_check_from_manager(&welcome, sizeof(welcome)) == ES_WELCOME);
    welcome.epoch = 0;
    CHECK(es_check_from_manager(&welcome, sizeof(welcome)) == ES_MALFORMED_FIELD);
    memset(refused.text, 'x', sizeof(refused.text));
    CHECK(es_check_from_manager(&refused, sizeof(refused)) == ES_MALFORMED_FIELD);
    CHECK(es_check_from_client(&release, sizeof(release)) == ES_RELEASE);
    release.header.number = 0;
    CHECK(es_check_from_client(&release, sizeof(release)) == ES_MALFORMED_FIELD);
}

static void words_carry_what_was_put_in(void) {
    struct es_gate_page page = {.epoch = 3};

    es_gate_open(&page, (1u << 30) - 1, 1, 5, 5, 0, 0, 0);
    CHECK(es_gate_number(es_gate_load(&page)) == (1u << 30) - 1);
    CHECK((es_gate_load(&page) & (ES_GATE_HELD | ES_GATE_CONTENDED)) == (ES_GATE_HELD | ES_GATE_CONTENDED));
    es_gate_open(&page, 9, 0, 6, 10, 7, ES_BESIDE_OTHERS, 20000);
    CHECK(page.beside == ES_BESIDE_OTHERS && page.cap_ns == 20000);
    CHECK(es_gate_load(&page) == es_gate_open_word(9, 0) && page.granted_at_ns == 6 && page.free_at_ns == 10 &&
          page.ends_at_ns == 7);
    es_gate_prolong(&page, 8);
    CHECK(page.ends_at_ns == 8);
    es_gate_close(&page);
    CHECK((es_gate_load(&page) & ES_GATE_HELD) == 0 && es_gate_number(es_gate_load(&page)) == 9);
    CHECK(es_gate_wait(&page, 12345, 1000000000) == 0); /* it is another one already */
    CHECK(es_gate_wait(&page, es_gate_load(&page), 1000) != 0);
    CHECK(es_gate_call(&page) == 0);
    es_gate_discard(&page);
    CHECK(page.epoch == 0);
}

static int parsed(const char *text, struct es_config *config) {
    const size_t bytes = strlen(text);
    char *copy = malloc(bytes + 1);
    int odd;

    memcpy(copy, text, bytes); /* and no zero at the end */
    odd = es_config_parse(copy, bytes, config);
    free(copy);
    return odd;
}

static void configs_are_read(void) {
    struct es_config config;

    CHECK(parsed("", &config) == 0 && config.failure_policy == ES_FAIL_OPEN && config.grace_ms == ES_CONFIG_GRACE_MS);
    CHECK(parsed("failure-policy=closed\n grace-ms = 250 \r\nmemory-cap-bytes=1073741824", &config) == 0);
    CHECK(config.failure_policy == ES_FAIL_CLOSED && config.grace_ms == 250 && config.memory_cap_bytes == 1 << 30);
    CHECK(parsed("failure-policy=perhaps\ngrace-ms=-1\nmemory-cap-bytes=99999999999999999999\nx\n=\n\n", &config) == 5);
    CHECK(config.failure_policy == ES_FAIL_OPEN && config.memory_cap_bytes == 0);
}

static void devices_are_read(void) {
    static const char *odd[] = {
        "",
        "0123456789abcdef0123456789abcde",
        "0123456789abcdef0123456789abcdef0",
        "0123456789abcdef0123456789abcdeg",
        "0123456789ABCDEF0123456789ABCDEF",
        "0123456789abcdef0123456789abcdef,",
        "0123456789abcdef0123456789abcdef 0123456789abcdef0123456789abcdef",
        "0123456789abcdef0123456789abcde,0123456789abcdef0123456789abcdef0",
    };
    char text[64 + (ES_DEVICES_MAX + 1) * (2 * ES_UUID_BYTES + 1)] = "device-uuids=";
    const struct es_config none = {.failure_policy = ES_FAIL_OPEN, .grace_ms = ES_CONFIG_GRACE_MS};
    struct es_config config;
    size_t length = strlen(text);

    CHECK(parsed("device-uuids=000102030405060708090a0b0c0d0e0f,f0000000000000000000000000000000\n", &config) == 0);
    for (int i = 0; i < ES_UUID_BYTES; i++) {
        CHECK(config.device_uuids[0][i] == i && config.device_uuids[1][i] == (i == 0 ? 0xf0 : 0));
        CHECK(config.device_uuids[2][i] == 0);
    }
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        (void)snprintf(text + length, sizeof(text) - length, "%s", odd[i]);
        CHECK(parsed(text, &config) == 1 && memcmp(config.device_uuids, none.device_uuids, sizeof(none.device_uuids)) == 0);
    }
    for (int i = 0; i <= ES_DEVICES_MAX; i++) {
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%032x", i > 0 ? "," : "", i);
        CHECK(parsed(text, &config) == (i == ES_DEVICES_MAX));
    }
}

void test_records(void) {
    records_are_checked();
    fields_are_checked();
    words_carry_what_was_put_in();
    configs_are_read();
    devices_are_read();
}
