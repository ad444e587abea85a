/* Prints every name that the hook is to export. */
#include <stdio.h>

#define ES_PTSZ(kind, name, parameters, arguments, key, stream) #name "\n" #name "_ptsz\n"
#define ES_PTDS(kind, name, parameters, arguments, key) #name "\n" #name "_ptds\n"
#define ES_ONE(kind, name, parameters, arguments, key, stream) #name "\n"
#define ES_OWN(name) #name "\n"
#define ES_USED(name)
#define ES_NVML(name) #name "\n"
#define ES_NVML_USED(name)

int main(void) {
    fputs(
#include "src/driver/symbols.def"
#define ES_TPU(name) #name "\n"
#include "src/tpu/tpu_symbols.def"
        "edgeshare_slice_begin\nedgeshare_slice_end\n"
        "dlsym\ndlvsym\n",
        stdout);
    return 0;
}
