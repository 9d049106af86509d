"""``harness ui`` as processes: nothing listens beyond this machine, and nothing outlives the command."""

from __future__ import annotations

import signal
import urllib.request
import uuid
from contextlib import suppress
from pathlib import Path

import pytest
from command import free_port, pids_of, processes_of, sockets_that_listen, started, wait_until

pytestmark = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux's table of sockets")

LOOPBACK = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}


def sockets_of(pid: int) -> set[str]:
    found = set()
    with suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                found.add(str(entry.readlink()))
    return found


def listening(mark: str) -> set[str]:
    """The addresses on which any process of ``mark`` listens, at whatever port, as the kernel writes them."""
    held = set().union(*map(sockets_of, pids_of(mark)))
    return {address for address, _, inode in sockets_that_listen() if f"socket:[{inode}]" in held}


@pytest.mark.timeout(180)
def test_the_ui_listens_on_loopback_alone_and_goes_when_its_command_is_killed(tmp_path: Path) -> None:
    port, mark = free_port(), uuid.uuid4().hex
    uri = f"sqlite:///{tmp_path}/named.db"
    with started(
        "ui", "--port", str(port), "--tracking-uri", uri, cwd=tmp_path, env={"HARNESS_TEST_MARK": mark}
    ) as process:
        assert process.stdout is not None
        assert "on this machine only" in process.stdout.readline()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=120) as page:
            assert b"<title>MLflow" in page.read()
        assert len(processes_of(mark)) > 1, "the server is a process of its own"
        addresses = listening(mark)
        assert addresses
        assert addresses <= LOOPBACK
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        wait_until(lambda: not processes_of(mark))
