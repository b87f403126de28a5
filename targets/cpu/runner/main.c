/* The runner: compiles (`compile`) and runs (`job`) hostile code for its parent, confined. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "confine.h"
#include "job.h"

enum { STACK = 8 << 20 };

static unsigned long number(const char *text) { return strtoul(text, NULL, 10); }

/* compile PARENT CPU_S SPACE FILE PROCESSES READ... -- WRITE... -- COMMAND... */
static int run_compiler(int argc, char **argv)
{
    char **read_only = argv + 5, **writable = NULL, **command = NULL;
    for (int i = 5; i < argc && !command; i++) {
        if (strcmp(argv[i], "--"))
            continue;
        argv[i] = NULL;
        if (writable)
            command = argv + i + 1;
        else
            writable = argv + i + 1;
    }
    if (!command || !*command)
        return 2;
    confine_process((long)number(argv[0]), STACK, number(argv[1]), number(argv[2]), number(argv[3]),
                    number(argv[4]));
    if (confine_files((const char *const *)read_only, (const char *const *)writable))
        return REFUSED;
    execv(command[0], command);
    perror(command[0]);
    return 127;
}

/* Prints the Landlock ABI if a filter can be installed. */
static int probe(void)
{
    int abi = landlock_abi();
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (confine_running(1))
        return REFUSED;
    char digit[] = {(char)('0' + abi % 10), '\n'};
    return write(1, digit, 2) != 2;
}

int main(int argc, char **argv)
{
    if (argc > 6 && !strcmp(argv[1], "compile"))
        return run_compiler(argc - 2, argv + 2);
    if (argc > 7 && !strcmp(argv[1], "job"))
        return run_job(argc - 2, argv + 2);
    if (argc == 2 && !strcmp(argv[1], "probe"))
        _exit(probe());
    return 2;
}
