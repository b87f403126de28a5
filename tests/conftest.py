"""Settings of all tests."""

from hypothesis import Phase, settings

settings.register_profile(
    "suite",
    deadline=None,  # a test that fsyncs on a busy machine has no deadline
    derandomize=True,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # a failing run of minutes is not shrunk
)
settings.load_profile("suite")
