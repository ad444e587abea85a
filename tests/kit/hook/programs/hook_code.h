#ifndef EDGESHARE_HOOK_CODE_H
#define EDGESHARE_HOOK_CODE_H

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Where the hook's code lies in this process; 0, where it is not there. */
static uintptr_t hook_begin, hook_end;

/* For dl_iterate_phdr: finds it. */
static int find_hook(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size, (void)data;
    if (strstr(info->dlpi_name, "libedgeshare_cuda") == NULL)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X) != 0) {
            hook_begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            hook_end = hook_begin + info->dlpi_phdr[i].p_memsz;
        }
    }
    return 1;
}

#endif
