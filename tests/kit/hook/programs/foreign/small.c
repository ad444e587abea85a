/* A program that has nothing to do with CUDA, for any C library: looks names up, starts a thread, allocates, forks. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *work(void *place) {
    *(int *)place = 1;
    return place;
}

int main(void) {
    pthread_t thread;
    int worked = 0, status = -1;
    pid_t child;
    void *found = NULL;

#ifndef STATIC
    found = dlsym(RTLD_DEFAULT, "puts");
    if (found == NULL || dlsym(RTLD_DEFAULT, "cuInit") != NULL || dlopen("libcuda-none.so", RTLD_NOW) != NULL ||
        dlerror() == NULL)
        return 3;
#endif
    if (pthread_create(&thread, NULL, work, &worked) != 0 || pthread_join(thread, NULL) != 0 || !worked)
        return 4;
    child = fork();
    if (child == 0)
        _exit(0);
    if (waitpid(child, &status, 0) != child || status != 0)
        return 5;
    free(malloc(100));
    puts(found != NULL ? "dynamic" : "static");
    return 0;
}
