"""The parts of ``kernelwright log``: one module per subcommand with ``main(args) -> int``."""
