#include "core/shared/config.h"

#include <string.h>

#include "core/shared/record.h"
#include "wire_checks.h"

struct span {
    const char *text;
    size_t bytes;
};

static int is(struct span span, const char *word) {
    return span.bytes == strlen(word) && memcmp(span.text, word, span.bytes) == 0;
}

static struct span trim(struct span span) {
    while (span.bytes > 0 && (*span.text == ' ' || *span.text == '\t')) {
        span.text++;
        span.bytes--;
    }
    while (span.bytes > 0 &&
           (span.text[span.bytes - 1] == ' ' || span.text[span.bytes - 1] == '\t' || span.text[span.bytes - 1] == '\r'))
        span.bytes--;
    return span;
}

/* A decimal number up to `most`; returns 0 for anything else. */
static int number(struct span span, uint64_t most, uint64_t *value) {
    uint64_t sum = 0;

    if (span.bytes == 0)
        return 0;
    for (size_t i = 0; i < span.bytes; i++) {
        if (span.text[i] < '0' || span.text[i] > '9' || sum > most / 10)
            return 0;
        sum = sum * 10 + (uint64_t)(span.text[i] - '0');
    }
    *value = sum;
    return sum <= most;
}

static int digit(char text) {
    const char *digits = "0123456789abcdef", *found = text != '\0' ? strchr(digits, text) : NULL;

    return found != NULL ? (int)(found - digits) : -1;
}

/* As many as there is room for; returns 0 for anything else. */
static int uuids(struct span span, uint8_t into[ES_DEVICES_MAX][ES_UUID_BYTES]) {
    const size_t each = 2 * ES_UUID_BYTES + 1; /* with the comma behind it */
    uint8_t read[ES_DEVICES_MAX][ES_UUID_BYTES] = {{0}};

    if (span.bytes == 0 || (span.bytes + 1) % each != 0 || (span.bytes + 1) / each > ES_DEVICES_MAX)
        return 0;
    for (size_t i = 0; i < span.bytes; i++) {
        uint8_t *byte = &read[i / each][i % each / 2];
        const int value = digit(span.text[i]);

        if (i % each == each - 1 ? span.text[i] != ',' : value < 0)
            return 0;
        if (value >= 0)
            *byte = (uint8_t)(*byte << 4 | value);
    }
    memcpy(into, read, sizeof(read));
    return 1;
}

static int set(struct es_config *config, struct span name, struct span value) {
    uint64_t parsed;

    if (is(name, "failure-policy") && is(value, "open"))
        config->failure_policy = ES_FAIL_OPEN;
    else if (is(name, "failure-policy") && is(value, "closed"))
        config->failure_policy = ES_FAIL_CLOSED;
    else if (is(name, "grace-ms") && number(value, UINT32_MAX, &parsed))
        config->grace_ms = (uint32_t)parsed;
    else if (is(name, "memory-cap-bytes") && number(value, ES_MEMORY_BYTES_MAX, &parsed))
        config->memory_cap_bytes = parsed;
    else
        return is(name, "device-uuids") && uuids(value, config->device_uuids);
    return 1;
}

int es_config_parse(const char *text, size_t bytes, struct es_config *config) {
    int odd = 0;

    *config = (struct es_config){.failure_policy = ES_FAIL_OPEN, .grace_ms = ES_CONFIG_GRACE_MS};
    while (bytes > 0) {
        const char *end = memchr(text, '\n', bytes);
        const size_t length = end != NULL ? (size_t)(end - text) : bytes;
        const char *equals = memchr(text, '=', length);
        const struct span line = trim((struct span){text, length});

        if (equals != NULL) {
            const struct span name = {text, (size_t)(equals - text)};
            const struct span value = {equals + 1, length - name.bytes - 1};

            odd += !set(config, trim(name), trim(value));
        } else {
            odd += line.bytes > 0;
        }
        text += length + (end != NULL);
        bytes -= length + (end != NULL);
    }
    return odd;
}
