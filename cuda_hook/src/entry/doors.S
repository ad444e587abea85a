/* dlsym and dlvsym. The choice is made in C (doors.c); when it is to forward, the real function must be reached by a
 * jump, with the caller's return address on top, because RTLD_NEXT means "after whoever called". A compiler does not
 * promise that (gcc keeps no tail call at -O1 or under a sanitizer), so it is written here.
 *
 * es_choose_*(…, caller) returns two words: the answer, and where to jump when that is none. */

#if defined(__x86_64__)

        .text
        .globl  dlsym
        .type   dlsym, @function
        .p2align 4
dlsym:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        movq    24(%rsp), %rdx
        call    es_choose_dlsym
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        testq   %rdx, %rdx
        jz      1f
        jmp     *%rdx
1:      ret
        .cfi_endproc
        .size   dlsym, .-dlsym

        .globl  dlvsym
        .type   dlvsym, @function
        .p2align 4
dlvsym:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        pushq   %rdx
        .cfi_adjust_cfa_offset 8
        movq    24(%rsp), %rcx
        call    es_choose_dlvsym
        movq    %rdx, %r11
        popq    %rdx
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        testq   %r11, %r11
        jz      1f
        jmp     *%r11
1:      ret
        .cfi_endproc
        .size   dlvsym, .-dlvsym

#elif defined(__aarch64__)

        .text
        .globl  dlsym
        .type   dlsym, %function
        .p2align 2
dlsym:
        .cfi_startproc
        hint    #34                     /* bti c */
        stp     x29, x30, [sp, #-32]!
        .cfi_adjust_cfa_offset 32
        stp     x0, x1, [sp, #16]
        mov     x29, sp
        mov     x2, x30
        bl      es_choose_dlsym
        mov     x16, x1
        cbz     x16, 1f
        ldp     x0, x1, [sp, #16]
1:      ldp     x29, x30, [sp], #32
        .cfi_adjust_cfa_offset -32
        cbz     x16, 2f
        br      x16
2:      ret
        .cfi_endproc
        .size   dlsym, .-dlsym

        .globl  dlvsym
        .type   dlvsym, %function
        .p2align 2
dlvsym:
        .cfi_startproc
        hint    #34
        stp     x29, x30, [sp, #-48]!
        .cfi_adjust_cfa_offset 48
        stp     x0, x1, [sp, #16]
        str     x2, [sp, #32]
        mov     x29, sp
        mov     x3, x30
        bl      es_choose_dlvsym
        mov     x16, x1
        cbz     x16, 1f
        ldp     x0, x1, [sp, #16]
        ldr     x2, [sp, #32]
1:      ldp     x29, x30, [sp], #48
        .cfi_adjust_cfa_offset -48
        cbz     x16, 2f
        br      x16
2:      ret
        .cfi_endproc
        .size   dlvsym, .-dlvsym

#else
#error "the doors are written for x86-64 and aarch64"
#endif

/* The hook itself calls the two by these names: by their own it may reach those of a library that stands before it. */
        .globl  es_door_dlsym
        .hidden es_door_dlsym
        .set    es_door_dlsym, dlsym
        .globl  es_door_dlvsym
        .hidden es_door_dlvsym
        .set    es_door_dlvsym, dlvsym

        .section .note.GNU-stack, "", %progbits
