/* The runner: programs that read hostile code (`run`), and hostile code itself (`job`), confined. */
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

/* run PARENT CPU_S SPACE FILE PROCESSES LIST... -- READ... -- WRITE... -- COMMAND...
 * One process: no other may be started, and nothing be sent to another. */
static int run_program(int argc, char **argv)
{
    char **parts[4] = {argv + 5};
    int n = 1;
    for (int i = 5; i < argc && n < 4; i++) {
        if (strcmp(argv[i], "--"))
            continue;
        argv[i] = NULL;
        parts[n++] = argv + i + 1;
    }
    if (n < 4 || !*parts[3])
        return 2;
    char **command = parts[3];
    int alone = number(argv[4]) == 1;
    confine_process((long)number(argv[0]), STACK, number(argv[1]), number(argv[2]), number(argv[3]),
                    alone ? 0 : number(argv[4]));
    struct paths paths = {(void *)parts[0], (void *)parts[1], (void *)parts[2]};
    if (confine_files(&paths) || (alone && confine_alone()))
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
    if (argc > 6 && !strcmp(argv[1], "run"))
        return run_program(argc - 2, argv + 2);
    if (argc > 7 && !strcmp(argv[1], "job"))
        return run_job(argc - 2, argv + 2);
    if (argc == 2 && !strcmp(argv[1], "probe"))
        _exit(probe());
    return 2;
}
