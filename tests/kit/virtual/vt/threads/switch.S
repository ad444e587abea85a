/* Changes from one thread's stack and thread-local data to another's. Both were made by the C library's pthread_create,
 * whose own kernel threads sleep for ever: see threads.c. */
#ifndef __x86_64__
#error "the virtual machine changes stacks by itself, which it can on x86-64 alone"
#endif

        .text

/* void vt_switch(void **from, void *to, uintptr_t fs, int instruction)
 * Where the kernel lets programs set the FS base by an instruction, that takes nanoseconds; else a system call. */
        .globl  vt_switch
        .hidden vt_switch
        .type   vt_switch, @function
vt_switch:
        push    %rbp
        push    %rbx
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        mov     %rsp, (%rdi)
        mov     %rsi, %rsp
        test    %ecx, %ecx
        jz      1f
        wrfsbase %rdx
        jmp     2f
1:      mov     $158, %eax              /* arch_prctl */
        mov     $0x1002, %edi           /* ARCH_SET_FS */
        mov     %rdx, %rsi
        syscall
2:      pop     %r15
        pop     %r14
        pop     %r13
        pop     %r12
        pop     %rbx
        pop     %rbp
        ret
        .size   vt_switch, . - vt_switch

/* void vt_park(void **from, uint32_t *here)
 * Leaves the stack as vt_switch finds it, says so, wakes who waits for that, and never touches the stack again. */
        .globl  vt_park
        .hidden vt_park
        .type   vt_park, @function
vt_park:
        push    %rbp
        push    %rbx
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        mov     %rsp, (%rdi)
        movl    $1, (%rsi)
        mov     %rsi, %rdi
        mov     $129, %esi              /* FUTEX_WAKE_PRIVATE */
        mov     $1, %edx
        mov     $202, %eax              /* futex */
        syscall
3:      mov     $34, %eax               /* pause */
        syscall
        jmp     3b
        .size   vt_park, . - vt_park

        .section .note.GNU-stack, "", @progbits
