/* The first process of a pod: it holds the namespaces that the pod's containers share. */
#include <unistd.h>

int main(void) {
    for (;;)
        pause();
}
