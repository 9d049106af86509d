"""eval_gradients on the cuDNN path of the stub: it stays on cuDNN, and cuDNN allows the backward."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness import stub
from harness.errors import StubUnavailableError

REPOSITORY = Path(__file__).parents[2]


def test_every_kind_of_rnn_stays_on_cudnn_and_may_be_differentiated() -> None:
    try:
        environment = stub.ensure().environment(os.environ)
    except StubUnavailableError as error:
        pytest.skip(str(error))
    done = subprocess.run(
        [sys.executable, "-m", "tests.contract.guard_fuzz.gradients"],
        env=environment | {"PYTHONPATH": str(REPOSITORY)},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(seen) == 5 * 5 * 2 * 2 * 2
    for one in seen:
        on_cudnn = one["path"] == "cudnn"
        assert on_cudnn or "bfloat16" in one["variant"], one
        assert one["inside"], one
        # The same forward outside it is refused: the proof has something to prove.
        assert one["outside"] is not on_cudnn, one
        assert one["left_alone"], one
