"""Which PyTorch a command would use is not to be answered by files that happen to lie in the current folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from harness.stub.process import torch_of


@pytest.mark.parametrize("shadow", ["torch.py", "torch/__init__.py", "importlib.py", "site.py"])
def test_a_file_of_the_persons_does_not_answer_for_pytorch(
    shadow: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    there = torch_of(sys.executable, os.environ)
    assert there is not None
    assert there.name == "torch"
    (tmp_path / shadow).parent.mkdir(exist_ok=True)
    (tmp_path / shadow).write_text("raise SystemExit('shadowed')\n")
    assert torch_of(sys.executable, os.environ) == there


def test_an_interpreter_that_cannot_answer_is_left_to_speak_for_itself(tmp_path: Path) -> None:
    broken = tmp_path / "python3"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    assert torch_of(str(broken), os.environ) is None
