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
        return 0;
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
