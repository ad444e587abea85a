/* A program of 32 bits, without headers and start files, which a machine of 64 bits need not have. */
extern int puts(const char *text);
extern void exit(int status);

void __attribute__((force_align_arg_pointer)) _start(void) {
    puts("narrow");
    exit(0);
}
