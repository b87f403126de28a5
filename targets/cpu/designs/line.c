typedef uint64_t line __attribute__((vector_size(64), aligned(1), may_alias));
