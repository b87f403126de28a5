/* The job that the parent describes, as it lies in the job file: 64-bit words, host order. */
#pragma once
#include <stdint.h>

enum { JOB_MAGIC = 0x6b776a31 };
enum role { ROLE_IN, ROLE_WEIGHT, ROLE_OUT, ROLE_INOUT, ROLE_SCRATCH };

struct job {
    uint64_t magic, page, core; /* core: UINT64_MAX leaves the process where it is */
    uint64_t n_buffers, n_copies, n_variants, n_rooms, n_steps;
};

struct buffer { uint64_t role, n_bytes; };

/* One launch: which arm, on which copy of the weights, variant of the inputs, room of outputs. */
struct step { uint64_t arm, copy, variant, room, poison, probe, report; };

/* After `struct job`: n_buffers buffers; n_copies * n_buffers offsets of weights in the data file;
 * n_variants * n_buffers offsets of inputs; n_steps steps. */

enum kind { LOADING = 1, READY, PROBED, STARTED, ENDED, OUTPUTS, DONE, FAULT, BROKEN };

/* What the runner reports, in order. OUTPUTS is followed by `a` bytes. */
struct report { uint64_t kind, step, a, b, c, d; };

/* job PARENT CPU_S SPACE JOB_FD DATA_FD OUT_FD ARM_FD...: does not return. */
int run_job(int argc, char **argv);
