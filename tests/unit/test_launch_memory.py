"""Memory without a disk, and the kernel's count of those it killed for want of memory."""

import os
from mmap import mmap
from pathlib import Path

import pytest

from harness.errors import LaunchError
from harness.launch import memory
from harness.launch.memory import oom_kills, shared_memory
from harness.launch.ward import Ward
from harness.matrix.axes import make_variant
from harness.model import Device, Order, Phase, Settings
from harness.wire import Breadcrumb


@pytest.fixture
def counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Where the count of the control group is looked for, and that of the machine."""
    groups, machine, membership = tmp_path / "groups", tmp_path / "vmstat", tmp_path / "membership"
    membership.write_text("12:cpu:/elsewhere\n0::/user.slice/mine\n")
    for name, place in {"VMSTAT": machine, "MEMBERSHIP": membership, "GROUPS": groups}.items():
        monkeypatch.setattr(memory, name, place)
    (groups / "user.slice" / "mine").mkdir(parents=True)
    return groups / "user.slice" / "mine" / "memory.events", machine


def test_the_count_of_the_control_group_comes_before_the_machines(counts: tuple[Path, Path]) -> None:
    group, machine = counts
    assert oom_kills() is None
    machine.write_text("nr_free_pages 6023061\noom_kill 12\n")
    assert oom_kills() == 12
    group.write_text("low 0\nhigh 0\nmax 5\noom 3\noom_kill 2\noom_group_kill 0\n")
    assert oom_kills() == 2


def test_in_a_container_the_root_of_what_is_mounted_is_its_own_group(counts: tuple[Path, Path]) -> None:
    """Else a neighbour's end, counted on the whole machine, would make a crash of ours an out-of-memory."""
    group, machine = counts
    machine.write_text("oom_kill 12\n")
    (memory.GROUPS / "memory.events").write_text("oom 1\noom_kill 1\n")
    assert oom_kills() == 1
    group.write_text("oom_kill 2\n")
    assert oom_kills() == 2


@pytest.mark.parametrize("membership", ["0::/\n", "0::/../../host/of/it\n", "", "1:memory:/old\n", None])
def test_whatever_is_said_of_the_group_it_is_looked_for_at_the_root(
    counts: tuple[Path, Path], membership: str | None
) -> None:
    if membership is None:
        memory.MEMBERSHIP.unlink()
    else:
        memory.MEMBERSHIP.write_text(membership)
    (memory.GROUPS / "memory.events").write_text("oom_kill 1\n")
    assert oom_kills() == 1


@pytest.mark.parametrize("content", ["", "oom 3\n", "oom_kill many\n", "oom_kill\n", "\xff\n"])
def test_a_count_that_cannot_be_read_is_none(counts: tuple[Path, Path], content: str) -> None:
    for file in counts:
        file.write_text(content, encoding="latin-1")
    assert oom_kills() is None


def test_the_kernel_of_this_machine_counts_or_says_nothing() -> None:
    count = oom_kills()
    assert count is None or count >= 0
    says = memory.VMSTAT.is_file() and "\noom_kill " in memory.VMSTAT.read_text()
    assert count is not None or not says


def test_shared_memory_is_zeros_that_can_be_mapped() -> None:
    descriptor = shared_memory("a test", 100)
    try:
        assert os.fstat(descriptor).st_size == 100
        with mmap(descriptor, 100) as mapped:
            assert mapped[:] == bytes(100)
            mapped[3] = 7
        assert os.pread(descriptor, 4, 0) == b"\0\0\0\7"
    finally:
        os.close(descriptor)


def test_where_the_system_has_none_a_file_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    descriptor = shared_memory("a test", 100)
    assert os.pread(descriptor, 200, 0) == bytes(100)
    os.close(descriptor)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs Linux's anonymous files")
def test_an_attempt_needs_no_place_for_temporary_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On a full disk a breadcrumb in a file would kill with SIGBUS whoever writes it."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    ward = Ward.prepare(Order("run", make_variant({}), Device.CPU, Settings()))
    try:
        Breadcrumb(ward.crumb.memory).drop(Phase.FORWARD, 1, 2)
        assert ward.crumb.read() == (1, Phase.FORWARD, 1, 2)
    finally:
        ward.close()


def test_no_memory_to_share_is_the_harness_failing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    with pytest.raises(LaunchError, match="no memory can be shared") as caught:
        shared_memory("a test", 100)
    assert "TMPDIR" in caught.value.advice
