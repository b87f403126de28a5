void kernel(const struct args *a)
{
    (void)a;
}
