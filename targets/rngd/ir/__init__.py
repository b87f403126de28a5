"""The text of a kernel between the tracer and the compiler: read, judged and printed anew."""
