/* The reader of PTX text, with the sanitizers watching. */
#include <stdlib.h>
#include <string.h>

#include "driver/module/ptx.h"
#include "property.h"
#include "workload/spin.h"

#define HEAD ".version 7.0\n.target sm_80\n.address_size 64\n"
#define BODY(text) HEAD ".visible .entry k(.param .u32 n, .param .u64 m) {\n" text "\nret;\n}\n"

static uint64_t values[] = {3, 7};
static uint64_t param(const void *from, uint32_t index, uint32_t size) {
    (void)size;
    return ((const uint64_t *)from)[index];
}

/* The duration that a body's comment gives with 10 blocks of 32 threads; UINT64_MAX: the image is refused. */
static uint64_t duration_of(const char *text) {
    struct image image;
    uint64_t found = UINT64_MAX;
    if (ptx_read(text, &image) == PTX_OK) {
        REQUIRE(image.kernels == 1);
        found = ptx_duration_ns(&image.kernel[0], 10, 32, 4, param, values);
    }
    ptx_free(&image);
    return found;
}

static void a_kernel_takes_what_its_comment_says(void) {
    REQUIRE(duration_of(BODY("// simgpu: duration_ns = 1000000")) == 1000000);
    REQUIRE(duration_of(BODY("//simgpu:duration_ns=param 0")) == 3);
    REQUIRE(duration_of(BODY("  // simgpu: duration_ns = 2 * param 1 * blocks + 5")) == 145);
    REQUIRE(duration_of(BODY("// simgpu: duration_ns = threads + blocks + 1 + param 0")) == 46);
    REQUIRE(duration_of(BODY("// other words\n// simgpu: duration_ns = 9 * 9")) == 81);
}

static void a_kernel_that_says_nothing_takes_a_time_by_its_grid(void) {
    struct image image;
    REQUIRE(ptx_read(BODY(""), &image) == PTX_OK);
    REQUIRE(ptx_duration_ns(&image.kernel[0], 1, 32, 4, param, values) == 5000);
    REQUIRE(ptx_duration_ns(&image.kernel[0], 32, 32, 4, param, values) == 5000);
    REQUIRE(ptx_duration_ns(&image.kernel[0], 33, 32, 4, param, values) == 10000);
    ptx_free(&image);
}

static void a_comment_that_cannot_be_read_is_refused(void) {
    static const char *const WRONG[] = {
        BODY("// simgpu: duration_ns = "),          BODY("// simgpu: duration_ns = -1"),
        BODY("// simgpu: duration_ns = param 2"),   BODY("// simgpu: duration_ns = 1 *"),
        BODY("// simgpu: duration_ns = 1 2"),       BODY("// simgpu: duration = 1"),
        BODY("// simgpu: duration_ns = cycles"),    BODY("// simgpu: duration_ns = 99999999999999999999 * 9"),
        BODY("// simgpu: duration_ns = 1+1+1+1+1"),
    };
    for (size_t index = 0; index < sizeof WRONG / sizeof *WRONG; index++)
        REQUIRE(duration_of(WRONG[index]) == UINT64_MAX);
}

static void durations_end_at_an_hour(void) {
    values[1] = UINT64_MAX;
    REQUIRE(duration_of(BODY("// simgpu: duration_ns = param 1 * param 1 + param 1")) == 3600000000000ull);
}

static void parameters_have_their_offsets_and_sizes(void) {
    struct image image;
    REQUIRE(ptx_read(HEAD ".entry k(.param .u8 a, .param .f64 b, .param .align 16 .b8 c[5], .param .u16 d,\n"
                          "/* a comment, */ .param .u64 .ptr .global .align 8 e) { ret; }\n"
                          ".entry none() { ret; }",
                     &image) == PTX_OK);
    static const uint32_t OFFSETS[] = {0, 8, 16, 22, 24}, SIZES[] = {1, 8, 5, 2, 8};
    REQUIRE(image.kernels == 2 && image.kernel[0].params == 5 && image.kernel[1].params == 0);
    for (uint32_t index = 0; index < 5; index++) {
        REQUIRE(image.kernel[0].param[index].offset == OFFSETS[index]);
        REQUIRE(image.kernel[0].param[index].size == SIZES[index]);
    }
    REQUIRE(image.kernel[0].param_bytes == 32);
    ptx_free(&image);
}

static void globals_have_their_sizes(void) {
    struct image image;
    REQUIRE(ptx_read(HEAD ".visible .global .align 4 .u32 a[16];\n.const .f64 b = 0d00;\n.extern .global .b8 c[3];", &image) ==
            PTX_OK);
    REQUIRE(image.globals == 3);
    REQUIRE(image.global[0].size == 64 && strcmp(image.global[0].name, "a") == 0);
    REQUIRE(image.global[1].size == 8 && image.global[2].size == 3);
    ptx_free(&image);
}

static void the_shipped_kernel_can_be_read(void) {
    struct image image;
    REQUIRE(ptx_read(SPIN_PTX, &image) == PTX_OK);
    REQUIRE(image.kernels == 1 && strcmp(image.kernel[0].name, "spin") == 0);
    REQUIRE(image.kernel[0].params == 1 && image.kernel[0].param[0].size == 8);
    REQUIRE(ptx_duration_ns(&image.kernel[0], 1, 1, 1, param, values) == 3);
    ptx_free(&image);
}

static void what_is_no_ptx_is_refused(void) {
    static const char *const WRONG[] = {"", "hello", ".version 7.0", "{}{}", "\n\n\n"};
    struct image image;
    for (size_t index = 0; index < sizeof WRONG / sizeof *WRONG; index++) {
        REQUIRE(ptx_read(WRONG[index], &image) == PTX_NOT_AN_IMAGE);
        ptx_free(&image);
    }
}

/* Every cut and many a changed byte of a good image: nothing is read that is not there. */
static void broken_text_is_read_without_harm(void) {
    const char *good = BODY("// simgpu: duration_ns = 2 * param 1 + 5") ".global .u32 a[4];";
    size_t length = strlen(good);
    struct image image;
    for (size_t cut = 0; cut <= length; cut++) {
        char *text = malloc(cut + 1);
        REQUIRE(text);
        memcpy(text, good, cut);
        text[cut] = 0;
        ptx_read(text, &image);
        ptx_free(&image);
        for (int byte = 1; cut && byte < 128; byte += 3) {
            text[cut / 2] = (char)byte;
            ptx_read(text, &image);
            ptx_free(&image);
        }
        free(text);
    }
}

static const struct property TESTS[] = {
    TEST(a_kernel_takes_what_its_comment_says),     TEST(a_kernel_that_says_nothing_takes_a_time_by_its_grid),
    TEST(a_comment_that_cannot_be_read_is_refused), TEST(durations_end_at_an_hour),
    TEST(parameters_have_their_offsets_and_sizes),  TEST(globals_have_their_sizes),
    TEST(the_shipped_kernel_can_be_read),           TEST(what_is_no_ptx_is_refused),
    TEST(broken_text_is_read_without_harm),
};

int main(int argc, char **argv) { return run_property(TESTS, sizeof TESTS / sizeof *TESTS, argc, argv); }
