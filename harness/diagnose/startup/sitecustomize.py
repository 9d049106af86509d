"""Runs in the watched process before its script: removes its own traces, and has PyTorch watched once it is imported.

Python imports it by its name, since its folder is the first of PYTHONPATH. The script is then started by Python itself
as ever: ``__main__``, ``sys.argv``, ``sys.path``, tracebacks and exit codes are what they would be without us.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parents[2]


def _begin() -> None:
    told = os.environ.pop("HARNESS_DIAGNOSE", None)
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != _HERE]
    _give_way()
    if told is None:
        return
    order = json.loads(told)
    if order["pythonpath"] is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = order["pythonpath"]
    sys.meta_path.insert(0, _Finder(Path(order["folder"])))


def _give_way() -> None:
    """Import the sitecustomize that this one stands in front of."""
    own = sys.modules.pop("sitecustomize")
    try:
        importlib.import_module("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", own)


class _Finder:
    """Finds PyTorch as it would be found without it, and has it watched as soon as it is there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """See ``importlib.abc.MetaPathFinder``."""
        if name != "torch":
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                self._watch(spec.loader)
                return spec
        return None

    def _watch(self, loader: Any) -> None:
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            execute(module)
            _attach(self.folder)

        loader.exec_module = exec_module


def _attach(folder: Path) -> None:
    try:
        _ours("harness.diagnose.witness").attach(str(folder))
    except Exception:
        import traceback

        with (folder / "notes.jsonl").open("a") as notes:
            notes.write(json.dumps({"failed": traceback.format_exc()}) + "\n")


def _ours(name: str) -> Any:
    """Import a module of this package, also where the script has a ``harness`` of its own, which stays its own."""
    spec = importlib.util.find_spec("harness")
    if spec is not None and spec.origin is not None and Path(spec.origin).resolve().parent == _ROOT / "harness":
        return importlib.import_module(name)
    theirs = _taken()
    sys.path.insert(0, str(_ROOT))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(_ROOT))
        _taken()
        sys.modules.update(theirs)


def _taken() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name == "harness" or name.startswith("harness.")]
    return {name: sys.modules.pop(name) for name in names}


_begin()
