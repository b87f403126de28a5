"""A folder between a turn and a person: files that are there, half there, or not what they seem."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from actors.providers.manual import SETTLE_S, ManualProvider
from actors.providers.port import Completion, ProviderError, Question
from decisions.tags import MAX_REPLY_BYTES
from tests.support.asking import question

PROMPT = "00001-qkv-design-*.prompt.md"


def asked(folder: Path, q: Question, timeout_s: float = 20.0) -> Completion:
    return ManualProvider(folder, timeout_s, sleep=lambda s: time.sleep(s / 10)).complete(q)


def reply_to(prompt: Path) -> Path:
    return prompt.with_name(prompt.name.replace(".prompt.", ".reply."))


def wait_for(folder: Path, pattern: str) -> Path:
    """The first file of that name, when it is there."""
    deadline = time.monotonic() + 20.0
    while time.monotonic() < deadline:
        if found := sorted(folder.glob(pattern)):
            return found[0]
        time.sleep(0.01)
    raise AssertionError(f"no {pattern} in {folder}")


@contextmanager
def answering(folder: Path, q: Question) -> Iterator[list[Completion]]:
    """A turn that waits, while the block plays the person; then its completion."""
    got: list[Completion] = []
    thread = threading.Thread(target=lambda: got.append(asked(folder, q)))
    thread.start()
    yield got
    thread.join(20.0)
    assert not thread.is_alive()


def put(reply: Path, text: str) -> None:
    """Answer as the page on models says: under another name first."""
    draft = reply.with_name("draft")
    draft.write_text(text)
    draft.rename(reply)


def test_a_prompt_is_a_file_and_so_is_its_reply(tmp_path: Path) -> None:
    """The prompt is whole when it can be seen, and goes when it is answered."""
    folder = tmp_path / "made by the provider"
    with answering(folder, question("größer\n")) as got:
        prompt = wait_for(folder, PROMPT)
        assert prompt.read_text() == "größer\n"
        put(reply_to(prompt), "a plan\n")

    assert got == [Completion("a plan\n", None, 1)]
    assert [f.name for f in folder.iterdir()] == [reply_to(prompt).name]


def test_a_reply_that_still_grows_is_not_taken(tmp_path: Path) -> None:
    """Nor is one that is there and empty, or under another name."""
    with answering(tmp_path, question("x")) as got:
        reply = reply_to(wait_for(tmp_path, PROMPT))
        reply.with_suffix(".part").write_text("not this")
        reply.touch()
        with reply.open("w") as file:
            for _ in range(8):
                time.sleep(SETTLE_S / 4)
                file.write("piece ")
                file.flush()
        assert got == []

    assert got[0].text == "piece " * 8


def test_a_reply_that_is_there_already_is_taken(tmp_path: Path) -> None:
    """A run that was killed while the person wrote asks again, and the answer counts."""
    prompts = []
    with answering(tmp_path, question("x")):
        prompts.append(wait_for(tmp_path, PROMPT))
        put(reply_to(prompts[0]), "the answer")

    assert asked(tmp_path, question("x")).text == "the answer"


def test_the_reply_to_another_prompt_is_not_taken(tmp_path: Path) -> None:
    """The folder may be that of an earlier run, whose turns had the same numbers."""
    with answering(tmp_path, question("x")):
        put(reply_to(wait_for(tmp_path, PROMPT)), "the answer to x")

    with pytest.raises(ProviderError, match=r"no 00001-qkv-design-.*\.reply\.md within 0\.3 s"):
        asked(tmp_path, question("y"), timeout_s=0.3)


def test_several_turns_wait_at_once(tmp_path: Path) -> None:
    """Each under its own name, answered in any order."""
    with answering(tmp_path, question("a", turn=1)) as first:
        wait_for(tmp_path, PROMPT)
        with answering(tmp_path, question("b", turn=2, task="step")) as second:
            put(reply_to(wait_for(tmp_path, "00002-qkv-step-*.prompt.md")), "to b")
        assert first == []
        put(reply_to(wait_for(tmp_path, PROMPT)), "to a")

    assert (first[0].text, second[0].text) == ("to a", "to b")


def test_no_reply_in_time_is_a_failure_and_closes_the_question(tmp_path: Path) -> None:
    """Somebody outside may have spent on it, so it counts what was reserved."""
    with pytest.raises(ProviderError) as caught:
        asked(tmp_path, question("x"), timeout_s=0.2)

    assert "raise 'timeout_s'" in caught.value.reason
    assert (caught.value.n_calls, caught.value.usage) == (1, None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("data", "said"),
    [(b" \n", "is empty"), (b"x" * (MAX_REPLY_BYTES + 1), "is longer than 1024 KB")],
)
def test_an_unusable_reply_is_a_failure(tmp_path: Path, data: bytes, said: str) -> None:
    """As of any other provider."""
    reply = reply_to(Path(_name(tmp_path)))
    reply.write_bytes(data)

    with pytest.raises(ProviderError, match=said):
        asked(tmp_path, question("x"))


def test_bytes_that_are_not_utf8_are_replaced(tmp_path: Path) -> None:
    """The parser sees a reply and can complain about it."""
    reply_to(Path(_name(tmp_path))).write_bytes(b"a\xffb")

    assert asked(tmp_path, question("x")).text == "a\ufffdb"


@pytest.mark.parametrize("what", ["link", "pipe", "folder"])
def test_what_is_no_file_is_not_read(tmp_path: Path, what: str) -> None:
    """A link could name any file, and a pipe would hang the turn beyond its deadline."""
    reply = reply_to(Path(_name(tmp_path)))
    match what:
        case "link":
            (tmp_path / "secret").write_text("secret")
            reply.symlink_to(tmp_path / "secret")
        case "pipe":
            os.mkfifo(reply)
        case _:
            reply.mkdir()

    with pytest.raises(ProviderError, match="within"):
        asked(tmp_path, question("x"), timeout_s=1.5)


def test_a_folder_that_cannot_be_made_fails_the_turn(tmp_path: Path) -> None:
    """The line names what is in the way."""
    (tmp_path / "file").write_text("")

    with pytest.raises(ProviderError, match=r"manual:f: .*file/f"):
        asked(tmp_path / "file" / "f", question("x"))


def test_a_folder_that_no_system_can_name_fails_the_turn(tmp_path: Path) -> None:
    """It is the same to the run."""
    with pytest.raises(ProviderError, match="null"):
        asked(tmp_path / "a\0b", question("x"))


def test_a_kernels_name_leads_nowhere_else(tmp_path: Path) -> None:
    """Targets name kernels."""
    folder = tmp_path / "in" / "here"
    with pytest.raises(ProviderError, match="within"):
        asked(folder, question("x", kernel="../../out"), timeout_s=0.1)

    assert [p.name for p in tmp_path.iterdir()] == ["in"]


def _name(folder: Path) -> str:
    """Of the prompt file of `question("x")`, found by asking."""
    with pytest.raises(ProviderError):
        ManualProvider(folder, 0.0, sleep=lambda s: None).complete(question("x"))
    digest = question("x").sha[:8]
    return str(folder / f"00001-qkv-design-{digest}.prompt.md")
