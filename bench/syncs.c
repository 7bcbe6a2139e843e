/* Counts fsync and fdatasync of one process in a file named after it in the directory SYNCS_DIR. For LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned long nowhere;
static unsigned long *count = &nowhere;

__attribute__((constructor)) static void open_count(void)
{
    char path[4096];
    const char *directory = getenv("SYNCS_DIR");
    if (directory == NULL)
        return;
    snprintf(path, sizeof path, "%s/%d", directory, (int)getpid());
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    if (ftruncate(file, sizeof *count) == 0) {
        void *place = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (place != MAP_FAILED)
            count = place;
    }
    close(file);
}

static int counted(const char *name, int file)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    __atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
    return real(file);
}

int fsync(int file) { return counted("fsync", file); }
int fdatasync(int file) { return counted("fdatasync", file); }
