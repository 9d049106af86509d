"""Whoever presses Ctrl-C a third time waits for nothing any more, and still loses nothing that was recorded."""

from __future__ import annotations

import signal
import socket
import time
import uuid
from contextlib import suppress
from pathlib import Path

import pytest
from command import ended, harness, kept, only_run, processes_of, started, wait_until

from harness.store.layout import Store


@pytest.mark.timeout(180)
def test_a_third_ctrl_c_leaves_at_once_and_says_that_records_are_kept(tmp_path: Path) -> None:
    """MLflow's server takes every call and answers none, so the end of the bookkeeping would be waited for."""
    mark = uuid.uuid4().hex
    with socket.create_server(("127.0.0.1", 0)) as mute:
        uri = f"http://127.0.0.1:{mute.getsockname()[1]}"
        words = ("run", "matrix", "quick", "--device", "cpu", "--tracking-uri", uri)
        # Past the proxy of the tests, which refuses at once: then there would be nothing to wait for.
        variables = {"HARNESS_TEST_MARK": mark, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        with started(*words, cwd=tmp_path, env=variables) as process:
            wait_until(lambda: process.poll() is not None or (Store(tmp_path).runs() and kept(tmp_path)[1]))
            asked = 0
            while process.poll() is None and asked < 20:
                with suppress(ProcessLookupError):
                    process.send_signal(signal.SIGINT)
                asked += 1
                time.sleep(0.5)
            end = ended(process)
    assert end.code == 130, end.err
    assert asked >= 3
    assert "Traceback" not in end.err
    sentence, advice = end.err.splitlines()[-2:]
    assert sentence.startswith("harness: left at once: what was recorded is kept")
    assert "harness sync" in advice
    wait_until(lambda: not processes_of(mark))
    assert only_run(tmp_path).records.read_bytes().endswith(b"}\n")
    report = harness("report", cwd=tmp_path)
    assert (report.code, report.err) == (0, "")
