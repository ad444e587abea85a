/* What a cubin says of its variables: they are symbols of the ELF file ("System V Application Binary Interface", chapter 4). */
#include "driver/module/cubin.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* A variable that other modules may name, with memory in this one. */
static bool is_variable(const Elf64_Sym *symbol, const char *name) {
    return ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && ELF64_ST_BIND(symbol->st_info) == STB_GLOBAL &&
           symbol->st_shndx != SHN_UNDEF && symbol->st_size && strlen(name) < PTX_NAME;
}

static enum ptx_status add(struct image *image, const char *name, size_t size) {
    struct ptx_global *more = realloc(image->global, (image->globals + 1) * sizeof *more);
    if (!more)
        return PTX_NO_MEMORY;
    image->global = more;
    more += image->globals++;
    memset(more, 0, sizeof *more);
    memcpy(more->name, name, strlen(name));
    more->size = size;
    return PTX_OK;
}

enum ptx_status cubin_variables(const char *cubin, struct image *image) {
    Elf64_Ehdr header;
    memcpy(&header, cubin, sizeof header);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr))
        return PTX_OK;
    for (uint32_t section = 0; section < header.e_shnum; section++) {
        Elf64_Shdr table, names;
        memcpy(&table, cubin + header.e_shoff + section * sizeof table, sizeof table);
        if (table.sh_type != SHT_SYMTAB || table.sh_link >= header.e_shnum)
            continue;
        memcpy(&names, cubin + header.e_shoff + table.sh_link * sizeof names, sizeof names);
        for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
            Elf64_Sym symbol;
            memcpy(&symbol, cubin + table.sh_offset + at, sizeof symbol);
            if (symbol.st_name >= names.sh_size)
                continue;
            const char *name = cubin + names.sh_offset + symbol.st_name;
            if (is_variable(&symbol, name) && add(image, name, symbol.st_size) != PTX_OK)
                return PTX_NO_MEMORY;
        }
    }
    return PTX_OK;
}
