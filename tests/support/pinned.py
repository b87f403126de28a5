"""What the rules of each version answer over one recorded run.

As a program it adds what is missing in the file of digests; it never changes what is there.
"""

import gzip
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from pydantic import TypeAdapter

from decisions import plan
from decisions.plan import RULES, first_answer
from events.projections.state import State
from events.vocabulary import Record

DATA = Path(__file__).parents[1] / "data"
DIGESTS = DATA / "decisions.json"
RECORDS = DATA / "eventful.jsonl.gz"
RECORD = TypeAdapter(Record)


def recorded() -> list[Record]:
    """The records of a run in which everything happens; see `tests.support.eventful`."""
    lines = gzip.decompress(RECORDS.read_bytes()).splitlines()
    return [RECORD.validate_json(line) for line in lines]


def answers(records: Iterable[Record]) -> dict[str, str]:
    """Digest, by rule and version, of all that it is the first to say in the course of a run."""
    state = State()
    texts: defaultdict[str, hashlib._Hash] = defaultdict(hashlib.sha256)
    for record in records:
        answered = first_answer(state, RULES)
        if answered is not None:
            (name, version, kinds, _), due = answered
            assert due.event.kind in kinds, f"{name} is not said to answer with {due.event.kind}"
            fields = due.event.model_dump_json(exclude_defaults=True)
            said = f"{state.seq} {due.event.kind} {fields} {due.because}\n"
            texts[f"{name} {version}"].update(said.encode())
        state.apply(record)
    return {rule: text.hexdigest() for rule, text in texts.items()}


if __name__ == "__main__":
    plan.DIGEST_EVERY = 100
    known = json.loads(DIGESTS.read_text()) if DIGESTS.exists() else {}
    pinned = answers(recorded()) | known
    DIGESTS.write_text(json.dumps(pinned, indent=2, sort_keys=True) + "\n")
