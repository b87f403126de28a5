"""A command-line agent: real programs, good and bad, and nothing left running."""

import os
import time
from pathlib import Path

import pytest

from actors.providers.command import CommandProvider
from actors.providers.port import Completion, ProviderError
from decisions.tags import MAX_REPLY_BYTES
from tests.support.asking import question

pytestmark = pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX")


def agent(folder: Path, script: str, timeout_s: float = 20.0) -> CommandProvider:
    path = folder / "agent.sh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return CommandProvider((str(path), "an argument; not a shell"), timeout_s)


def failure(provider: CommandProvider, prompt: str = "hi") -> str:
    with pytest.raises(ProviderError) as caught:
        provider.complete(question(prompt))
    assert (caught.value.n_calls, caught.value.usage) == (1, None)
    return caught.value.reason


def is_running(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def assert_gone(pid: int) -> None:
    """A killed orphan vanishes when init reaps it, soon after the kill."""
    deadline = time.monotonic() + 5.0
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(pid)


def test_the_prompt_goes_in_on_stdin_and_the_reply_comes_out(tmp_path: Path) -> None:
    """Arguments reach the program as they are; no shell reads them."""
    provider = agent(tmp_path, 'echo "$1"; cat')

    assert provider.complete(question("größer\n")) == Completion(
        "an argument; not a shell\ngrößer\n", None, 1
    )
    assert provider.name == "command:agent.sh"


def test_a_long_prompt_and_a_long_reply_do_not_block_each_other(tmp_path: Path) -> None:
    """Both are larger than any pipe."""
    prompt = "x" * (MAX_REPLY_BYTES - 10)

    assert agent(tmp_path, "cat").complete(question(prompt)).text == prompt


def test_a_program_need_not_read_its_prompt(tmp_path: Path) -> None:
    """A closed stdin is not an error by itself."""
    assert agent(tmp_path, "echo done").complete(question("x" * 300_000)).text == "done\n"


def test_bytes_that_are_not_utf8_are_replaced(tmp_path: Path) -> None:
    """The parser sees a reply and can complain about it."""
    assert agent(tmp_path, r"printf 'a\377b'").complete(question("")).text == "a\ufffdb"


def test_a_bad_exit_status_is_reported_with_the_last_words(tmp_path: Path) -> None:
    """The tail of stderr usually says why."""
    reason = failure(agent(tmp_path, "echo reply; echo no credit >&2; exit 3"))

    assert reason == "command:agent.sh: exit status 3; stderr: no credit"


def test_only_the_tail_of_stderr_is_kept(tmp_path: Path) -> None:
    """A program may log without end; its record stays small."""
    reason = failure(agent(tmp_path, "head -c 3000000 /dev/zero | tr '\\0' e >&2; exit 1"))

    assert len(reason) < 2100


def test_a_hanging_program_dies_with_its_children_at_the_limit(tmp_path: Path) -> None:
    """The whole process group is killed, and nothing waits for it."""
    children = tmp_path / "children"
    script = f"sleep 600 & echo $! > {children}; echo partial; sleep 600"
    started = time.monotonic()

    reason = failure(agent(tmp_path, script, timeout_s=0.5))

    assert time.monotonic() - started < 5.0
    assert "time limit" in reason
    assert_gone(int(children.read_text()))


def test_a_child_left_behind_holds_nothing_up(tmp_path: Path) -> None:
    """The reply is complete when the program has exited; a child that keeps the pipe is killed."""
    children = tmp_path / "children"
    started = time.monotonic()

    text = (
        agent(tmp_path, f"sleep 600 & echo $! > {children}; echo done").complete(question("")).text
    )

    assert text == "done\n"
    assert time.monotonic() - started < 5.0
    assert_gone(int(children.read_text()))


def test_a_flood_is_cut_off(tmp_path: Path) -> None:
    """Endless output ends at the size limit, long before the time limit."""
    assert "more than 1024 KB of output" in failure(agent(tmp_path, "yes"))


@pytest.mark.parametrize("script", ["true", "echo; echo '  '", "exec >&-; sleep 0.2"])
def test_an_empty_reply_is_a_failure(tmp_path: Path, script: str) -> None:
    """There is nothing to complain about to the author."""
    assert failure(agent(tmp_path, script)) == "command:agent.sh: empty reply"


def test_a_program_killed_by_a_signal_is_a_failure(tmp_path: Path) -> None:
    """Its partial output is no reply."""
    assert "exit status -9" in failure(agent(tmp_path, "echo partial; kill -9 $$"))


def test_a_missing_program_is_named() -> None:
    """The reason points at the setting."""
    with pytest.raises(ProviderError, match="cannot start 'no-such-agent': No such file"):
        CommandProvider(("no-such-agent",), 5.0).complete(question("hi"))


def test_no_descriptors_are_left_open(tmp_path: Path) -> None:
    """A run of days makes thousands of calls."""
    provider = agent(tmp_path, "cat")
    provider.complete(question("x"))
    before = len(os.listdir("/dev/fd"))
    for _ in range(10):
        provider.complete(question("x"))

    assert len(os.listdir("/dev/fd")) == before
