/* A kernel that takes as long as its parameter says. On a real GPU it watches the timer (which may tick in steps of 1 µs,
 * on some models of 32 µs); the simulated driver reads the comment in it. */
#ifndef SIMGPU_SPIN_H
#define SIMGPU_SPIN_H

/* Any GPU since Maxwell, any driver since CUDA 9. Labels and registers are each kernel's own. */
#define SPIN_HEAD ".version 6.0\n.target sm_50\n.address_size 64\n"
#define SPIN_ENTRY(name)                                  \
    ".visible .entry " name "(.param .u64 " name "_ns)\n" \
    "{\n"                                                 \
    "    .reg .pred %p;\n"                                \
    "    .reg .b64 %begin, %now, %passed, %length;\n"     \
    "    // simgpu: duration_ns = param 0\n"              \
    "    ld.param.u64 %length, [" name "_ns];\n"          \
    "    mov.u64 %begin, %globaltimer;\n"                 \
    "LOOP:\n"                                             \
    "    mov.u64 %now, %globaltimer;\n"                   \
    "    sub.u64 %passed, %now, %begin;\n"                \
    "    setp.lt.u64 %p, %passed, %length;\n"             \
    "    @%p bra LOOP;\n"                                 \
    "    ret;\n"                                          \
    "}\n"

static const char SPIN_PTX[] = SPIN_HEAD SPIN_ENTRY("spin");

#endif
