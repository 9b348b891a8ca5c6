"""A full disk for the tests of sweeps."""

import resource
import signal
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture
def files_of_few_bytes() -> Iterator[Callable[[int], None]]:
    """Makes writes beyond a size fail as they do on a full disk: partly, and with an `OSError`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, handler)
