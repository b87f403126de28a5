"""Settings of all tests."""

import pytest
import structlog
from hypothesis import Phase, settings

settings.register_profile(
    "suite",
    deadline=None,  # a test that fsyncs on a busy machine has no deadline
    derandomize=True,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # a failing run of minutes is not shrunk
)
settings.load_profile("suite")


def pytest_runtest_setup() -> None:
    """Let failures of actors be told as they are: drawing one in colours takes half a second."""
    structlog.configure(
        processors=[structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()]
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    """How thorough the slow tests are."""
    parser.addoption(
        "--kills", type=int, default=200, help="how often the writer of a log is killed"
    )
    parser.addoption(
        "--cuts", type=int, default=0, help="how often the power is cut under a writer (as root)"
    )
    parser.addoption(
        "--seconds", type=int, default=10, help="how long a reader follows a busy writer"
    )
    parser.addoption(
        "--campaigns", type=int, default=40, help="how many campaigns are simulated with faults"
    )
