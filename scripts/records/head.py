"""``kernelwright log head``: the hash to note down elsewhere."""

from argparse import Namespace

from events.log import read_head


def main(args: Namespace) -> int:
    """Print the chain hash over the whole log, after verifying the chain."""
    print(read_head(args.run))
    return 0
