"""``harness ui`` before any server is started."""

import socket
from contextlib import closing
from pathlib import Path

import pytest

from harness.errors import PortInUseError, RunNotFoundError, UsageError
from harness.store.layout import Store
from harness.store.ui import HOST, base_url, check_port, links, serving, ui_command


def test_the_ui_listens_on_loopback_only(tmp_path: Path) -> None:
    command = ui_command(Store(tmp_path, "sqlite:///x.db"), 5055)
    assert command[command.index("--host") + 1] == "127.0.0.1"
    assert command[command.index("--port") + 1] == "5055"
    assert command[command.index("--backend-store-uri") + 1] == "sqlite:///x.db"


def test_a_taken_port_names_the_next_free_one() -> None:
    with closing(socket.socket()) as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortInUseError, match=f"port {port} on 127.0.0.1 is taken") as caught:
            check_port(port)
    free = int(caught.value.advice.split("--port ")[1].split(",")[0])
    assert free > port
    check_port(port)


@pytest.mark.parametrize("port", [-1, 0, 65536])
def test_a_port_is_a_port(port: int) -> None:
    with pytest.raises(UsageError, match="not a port number"):
        check_port(port)


def test_an_empty_store_has_a_home_page_only(tmp_path: Path) -> None:
    found = links(Store(tmp_path), 5055)
    assert (found.home, found.table, found.comparison) == (base_url(5055), None, None)
    with pytest.raises(RunNotFoundError):
        links(Store(tmp_path), 5055, "20250101")


def test_a_tracking_server_has_a_ui_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a UI of its own"), serving(Store(tmp_path, "http://host:5000")):
        pass
