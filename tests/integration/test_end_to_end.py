"""Real runs: a real compiler, real processes, real times, a real Ray, a real server."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from events.log import holds_log, read
from events.projections.state import replay
from events.vocabulary import RoleReplied
from tests.support import agent
from tests.support.cli import campaign_file, command, kernelwright

pytestmark = [pytest.mark.device, pytest.mark.timeout(420)]

ATTENTION = "sliding_attention_output"
KERNELS = ("sliding_project_qkv", ATTENTION, "decoder_feedforward")


def kinds(run: Path) -> Counter[str]:
    return Counter(record.event.kind for record in read(run))


@pytest.mark.ray
def test_one_command_optimizes_three_kernels_on_ray(tmp_path: Path) -> None:
    """The catalogue finds real speed-ups, and every other command understands the run."""
    settings = campaign_file(tmp_path, *KERNELS, max_candidates=12)
    run = tmp_path / "run"

    done = kernelwright("run", settings, "--out", run, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "geomean" in done.stdout
    state = replay(read(run))
    assert state.finished is not None
    assert state.finished.geomean is not None
    assert state.finished.geomean > 1.5
    for words in (["replay"], ["tree"], ["audit", "--all"], ["report"], ["export"]):
        done = kernelwright(words[0], run, *words[1:], cwd=tmp_path)
        assert done.returncode == 0, (words, done.stderr)
    assert "<html" in (run / "report.html").read_text()
    assert {p.name for p in (run / "export").glob("*.c")} == {f"{kernel}.c" for kernel in KERNELS}


@pytest.mark.ray
def test_kill_9_three_times_then_resume_and_audit(tmp_path: Path) -> None:
    """Whatever was acknowledged is there, nothing is left behind, and the evidence holds."""
    settings = campaign_file(tmp_path, ATTENTION, max_candidates=8)
    run = tmp_path / "run"
    for _ in range(3):
        killed_after_progress(settings, run)

    done = kernelwright("run", settings, "--out", run, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert kinds(run)["run_resumed"] == 3
    assert replay(read(run)).finished
    audited = kernelwright("audit", run, "--all", cwd=tmp_path)
    assert audited.returncode == 0, audited.stderr


def killed_after_progress(settings: Path, run: Path, n_records: int = 25) -> None:
    """Run until ``n_records`` more are on disk, then kill -9 the process that runs."""
    before = sum(1 for _ in read(run)) if holds_log(run) else 0
    with subprocess.Popen(
        command("run", settings, "--out", run),
        cwd=settings.parent,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.1)
            if holds_log(run) and sum(1 for _ in read(run)) >= before + n_records:
                break
        assert process.poll() is None, "the run ended before it could be killed"
        process.send_signal(signal.SIGKILL)


def test_ctrl_c_stops_at_a_safe_point_and_says_how_to_go_on(tmp_path: Path) -> None:
    """An interrupted run is resumed by the command that it prints."""
    settings = campaign_file(tmp_path, ATTENTION, max_candidates=3)
    run = tmp_path / "run"
    with subprocess.Popen(
        command("run", settings, "--out", run, "--local"),
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        while not (holds_log(run) and kinds(run)["candidate_screened"]):
            time.sleep(0.1)
            assert process.poll() is None
        second = kernelwright("run", run, "--local", cwd=tmp_path)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)

    assert second.returncode == 2
    assert "is being run by" in second.stderr
    assert process.returncode == 130
    assert f"kernelwright run {run}" in said
    assert kinds(run)["run_interrupted"] == 1
    done = kernelwright("run", run, "--local", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert kernelwright("audit", run, cwd=tmp_path).returncode == 0


def test_a_command_line_agent_optimizes_a_kernel(tmp_path: Path) -> None:
    """Prompt on stdin, reply on stdout: a whole design, and a step that needed its repair turn."""
    program = json.dumps([sys.executable, agent.__file__])
    more = f'[models.default]\nprovider = "command"\ncommand = {program}\n'
    settings = campaign_file(tmp_path, ATTENTION, max_candidates=3, max_designs=1, more=more)
    run = tmp_path / "run"

    done = kernelwright("run", settings, "--out", run, "--local", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert_the_agent_was_heard(run)
    audited = kernelwright("audit", run, cwd=tmp_path)
    assert audited.returncode == 0, audited.stderr


def assert_the_agent_was_heard(run: Path) -> None:
    """The agent's design was accepted, and its step came through the repair turn."""
    state = replay(read(run))
    best = state.tree.incumbent(ATTENTION)
    assert best.form in ("design", "step")
    outcomes = [r.event.outcome.type for r in read(run) if isinstance(r.event, RoleReplied)]
    assert "complaint" in outcomes
    assert any(node.form == "step" for node in state.tree.nodes.values())


class Completions(BaseHTTPRequestHandler):
    """An OpenAI-compatible server with one model: the agent."""

    def do_POST(self) -> None:
        """Answer a chat completion, and say what it cost."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = "\n".join(str(message["content"]) for message in asked["messages"])
        body = json.dumps(completion(agent.reply(prompt))).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def completion(text: str) -> dict[str, Any]:
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": text},
    }
    usage = {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}
    return {
        "id": "1", "object": "chat.completion", "created": 0, "model": "m",
        "choices": [choice], "usage": usage,
    }  # fmt: skip


@contextmanager
def server() -> Iterator[str]:
    """A server on a free port; yields its base URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Completions) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_address[1]}/v1"
        finally:
            listening.shutdown()
            thread.join()


def test_a_model_behind_an_openai_server_optimizes_within_its_budget(tmp_path: Path) -> None:
    """LiteLLM talks to a real server; the budget of calls closes the search, never overspent."""
    with server() as url:
        more = (
            "[budget]\nmodel_calls = 9\n"
            f'[models.default]\nprovider = "litellm"\nmodel = "openai/m"\nbase_url = "{url}"\n'
            'api_key_env = "TEST_KEY"\nusd_per_million_in = 1.0\nusd_per_million_out = 2.0\n'
        )
        settings = campaign_file(tmp_path, ATTENTION, max_candidates=40, max_designs=2, more=more)
        run = tmp_path / "run"
        os.environ["TEST_KEY"] = "k"  # noqa: TID251  # the child process reads it
        try:
            done = kernelwright("run", settings, "--out", run, "--local", cwd=tmp_path)
        finally:
            del os.environ["TEST_KEY"]  # noqa: TID251

    assert done.returncode == 0, done.stderr
    state = replay(read(run))
    assert state.closed is not None
    assert state.closed.reason == "budget: model_calls"
    spent = state.spending.settled
    assert 4 <= spent.model_calls <= 9
    assert spent.tokens == 1500 * spent.model_calls
    assert spent.cost_usd == pytest.approx(0.002 * spent.model_calls)
    assert state.tree.incumbent(ATTENTION).form in ("design", "step")
    assert "TEST_KEY" in json.dumps(next(iter(read(run))).as_json())
    assert kernelwright("audit", run, cwd=tmp_path).returncode == 0
