"""`harness diagnose` leaves a script alone: output, exit code, exceptions, ``__main__``; findings survive any end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.stub import NOTICE
from tests.contract.command import HARNESS, Ended, assert_sentence_and_advice, environment, harness, started

CPU = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
SAYS = "\nharness diagnose: "

EVAL_BACKWARD = """
import torch
rnn = torch.nn.LSTM(3, 4).eval()
rnn(torch.ones(2, 1, 3))[0].sum().backward()
"""


def plain(*words: str, cwd: Path, **options: Any) -> Ended:
    """What Python alone does with the script."""
    settings = {"capture_output": True, "stdin": subprocess.DEVNULL, "timeout": 100} | options
    ended = subprocess.run([sys.executable, *words], cwd=cwd, env=environment(CPU), check=False, **settings)
    code = ended.returncode if ended.returncode >= 0 else 128 - ended.returncode
    return Ended(code, ended.stdout.decode(), ended.stderr.decode())


def diagnosed(*words: str | Path, cwd: Path, device: str = "cpu", **options: Any) -> tuple[Ended, dict[str, Any]]:
    """How the command ended, and the diagnosis that it wrote."""
    path = cwd / "diagnosis.json"
    ended = harness("diagnose", "--device", device, "--json", path, *words, cwd=cwd, **options)
    return ended, json.loads(path.read_text()) if path.exists() else {}


def alone(*words: str, cwd: Path, **options: Any) -> tuple[Ended, dict[str, Any]]:
    """Run a script with and without us, and require that it cannot tell; what it wrote is that of Python alone."""
    own = plain(*words, cwd=cwd, **options)
    ended, diagnosis = diagnosed(*words, cwd=cwd, **options)
    written, says, _ = ended.err.partition(SAYS)
    assert says
    assert (ended.code, ended.out, written) == (own.code, own.out, own.err)
    assert diagnosis["exit"]["code"] == own.code
    return own, diagnosis


INTROSPECTION = """
import json, os, sys
hidden = ("LINES", "COLUMNS")
print(json.dumps({
    "argv": sys.argv, "path": sys.path, "name": __name__, "file": __file__, "spec": getattr(__spec__, "name", None),
    "main": sys.modules["__main__"].__dict__ is globals(), "stdin": sys.stdin.read(),
    "finders": [str(finder) for finder in sys.meta_path if "Editable" not in str(finder)][-3:],
    "environment": {name: value for name, value in os.environ.items() if name not in hidden},
    "harness": "harness" in sys.modules,
}, sort_keys=True))
"""


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)", 7),
        ("raise ValueError('no')", 1),
        ("def f(:\n", 1),
        ("import os; print('kept', flush=True); os._exit(5)", 5),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 137),
        ("import os, signal; os.kill(os.getpid(), signal.SIGINT)", 130),
        ("import sys; sys.exit('a sentence')", 1),
        ("import sys, threading; threading.Thread(target=sys.missing).start()", 1),
        (INTROSPECTION, 0),
    ],
)
def test_a_script_cannot_tell(tmp_path: Path, source: str, code: int) -> None:
    (tmp_path / "script.py").write_text(source)
    options: dict[str, Any] = {}
    if "stdin" in source:
        options = {"input": b"what was piped in", "stdin": None}
    own, diagnosis = alone("script.py", "--json", "its own", "-m", cwd=tmp_path, **options)
    assert own.code == code
    assert diagnosis["findings"] == []
    assert "did not import PyTorch" in diagnosis["notes"][0]


def test_a_module_of_a_package_runs_as_one(tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "other.py").write_text("HERE = 'found'")
    (package / "train.py").write_text(f"from .other import HERE\nprint(HERE)\n{INTROSPECTION}")
    alone("-m", "pkg.train", "--device", "its own", cwd=tmp_path)
    missing, _ = alone("-m", "pkg.absent", cwd=tmp_path)
    assert missing.code == 1


def test_findings_outlive_any_end(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    for end, code in (("os._exit(5)", 5), ("os.kill(os.getpid(), signal.SIGKILL)", 137)):
        script.write_text(f"import os, signal, sys\n{EVAL_BACKWARD}\nprint('done', flush=True)\n{end}\n")
        ended, diagnosis = diagnosed("script.py", cwd=tmp_path)
        assert (ended.code, ended.out) == (code, "done\n")
        assert (diagnosis["forwards"], diagnosis["backwards"]) == (1, 1)
        assert [finding["pattern"] for finding in diagnosis["findings"]] == ["eval-always"]
        assert diagnosis["exit"]["signal"] == ("SIGKILL" if code == 137 else None)


def test_tracebacks_show_none_of_our_lines(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import torch\nrnn = torch.nn.GRU(3, 4)\ntry:\n    rnn(torch.ones(2, 1, 3).double())\n"
        "except Exception as error:\n    raise ValueError('it led to this') from error\n"
    )
    own, diagnosis = alone("script.py", cwd=tmp_path)
    assert own.err.count("Traceback") == 2
    assert diagnosis["exit"]["exception"] == "ValueError"


WORKERS = """
import argparse, importlib.util, pickle, sys
assert importlib.util.find_spec("torch")  # asked before it is imported, as trainers do
import torch
import harness  # the script's own module of that name
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        assert "harness.diagnose.witness" not in sys.modules or torch.utils.data.get_worker_info().id == 0
        return torch.full((2, 3), float(index))

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--start")
    start = parser.parse_args().start
    assert harness.MINE
    assert pickle.loads(pickle.dumps(Numbers)) is Numbers
    rnn = torch.nn.Sequential(torch.nn.LSTM(3, 4, batch_first=True)).eval()
    for batch in DataLoader(Numbers(), batch_size=2, num_workers=1, multiprocessing_context=start):
        rnn(batch)[0].sum().backward()
    print(start, "done")

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_workers_arguments_and_a_harness_of_its_own(tmp_path: Path, start: str) -> None:
    (tmp_path / "harness.py").write_text("MINE = True\n")
    (tmp_path / "script.py").write_text(WORKERS)
    ended, diagnosis = diagnosed("script.py", "--start", start, cwd=tmp_path)
    assert (ended.code, ended.out) == (0, f"{start} done\n")
    assert ended.err.startswith(SAYS)
    (finding,) = diagnosis["findings"]
    assert (finding["kind"], finding["module"], finding["count"]["times"]) == ("would-raise", "0", 2)
    assert not any("forked" in note or "spawned" in note or "fault" in note for note in diagnosis["notes"])


def test_what_runs_in_a_forked_process_is_told_to_be_unseen(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        f"import os, torch\nif os.fork() == 0:\n    exec({EVAL_BACKWARD!r})\n    os._exit(0)\nos.wait()\n"
    )
    ended, diagnosis = diagnosed("script.py", cwd=tmp_path)
    assert ended.code == 0
    assert (diagnosis["forwards"], diagnosis["findings"]) == (0, [])
    assert "\nharness diagnose: no RNN was seen to run, on cpu" in ended.err
    own, forked = diagnosis["notes"]
    assert own.startswith("No nn.RNN, nn.LSTM or nn.GRU ran in the script's own process ")
    assert forked == "RNNs ran in processes that the script forked; those are not watched."


SPAWNS = """
import multiprocessing
import torch

def work():
    open("worked", "w").close()

if __name__ == "__main__":
    process = multiprocessing.get_context("{start}").Process(target=work)
    process.start()
    process.join()
    assert process.exitcode == 0
"""


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_what_runs_in_a_spawned_process_is_told_to_be_unseen(tmp_path: Path, start: str) -> None:
    (tmp_path / "script.py").write_text(SPAWNS.format(start=start))
    ended, diagnosis = diagnosed("script.py", cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert (tmp_path / "worked").exists()
    assert any("spawned processes (multiprocessing)" in note for note in diagnosis["notes"]), diagnosis["notes"]


def test_a_script_that_removes_our_notes_still_ends_as_it_does(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import glob, shutil, tempfile, torch\n"
        "for folder in glob.glob(tempfile.gettempdir() + '/harness-diagnose-*'):\n    shutil.rmtree(folder)\n"
        f"{EVAL_BACKWARD}\nraise ValueError('its own')\n"
    )
    env = {"TMPDIR": str(tmp_path)}
    ended, diagnosis = diagnosed("script.py", cwd=tmp_path, env=env)
    assert (ended.code, diagnosis["findings"]) == (1, [])
    assert ended.err.partition(SAYS)[0].endswith("ValueError: its own\n")
    assert "the notes are gone" in diagnosis["notes"][0]


def test_another_sitecustomize_is_not_stood_in_front_of(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("print('theirs')")
    (tmp_path / "script.py").write_text("import os, sys; print(os.environ['PYTHONPATH'], sys.modules['sitecustomize'])")
    ended, _ = diagnosed("script.py", cwd=tmp_path, env={"PYTHONPATH": str(folder)})
    # Once for the command itself, once for the script.
    assert ended.out == f"theirs\ntheirs\n{folder} <module 'sitecustomize' from '{folder}/sitecustomize.py'>\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_what_ends_the_command_ends_the_script_and_is_told(tmp_path: Path, number: signal.Signals) -> None:
    # As `sleep` in a shell script would have it: SIGINT is for whoever handles it, the others end the process.
    (tmp_path / "script.py").write_text(
        "import signal, time\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "print('ready', flush=True)\ntime.sleep(60)\n"
    )
    with started("diagnose", "--device", "cpu", "script.py", cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        # A terminal tells the whole group of Ctrl-C; other signals come to the command alone.
        (os.killpg if number is signal.SIGINT else os.kill)(process.pid, number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "harness diagnose: no RNN was seen to run, on cpu" in err
    assert ("KeyboardInterrupt" in err) is (number is signal.SIGINT)


def test_json_on_stdout_comes_after_the_scripts_own(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("print('first')")
    ended = harness("diagnose", "--device", "cpu", "--json", "-", "script.py", cwd=tmp_path)
    first, _, rest = ended.out.partition("\n")
    assert first == "first"
    assert json.loads(rest)["device"] == "cpu"


def test_on_the_stub_the_error_is_pytorchs_own(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(EVAL_BACKWARD.replace(".eval()", ".eval().cuda()").replace("3)", "3).cuda()"))
    ended, diagnosis = diagnosed("script.py", cwd=tmp_path, device="stub")
    if ended.code == 2:
        pytest.skip(ended.err)
    assert (ended.code, diagnosis["device"]) == (1, "stub")
    assert "RuntimeError: cudnn RNN backward can only be called in training mode" in ended.err.partition(SAYS)[0]
    assert diagnosis["exit"]["exception"] == "RuntimeError"
    (finding,) = diagnosis["findings"]
    assert (finding["kind"], finding["path"]) == ("error", "cudnn")
    assert not any("--device cpu" in note for note in diagnosis["notes"])


@pytest.mark.parametrize("choice", ["cuda", "cpu", "auto"])
def test_behind_the_stub_only_the_stub_is_told(tmp_path: Path, choice: str) -> None:
    (tmp_path / "script.py").write_text(EVAL_BACKWARD.replace(".eval()", ".eval().cuda()").replace("3)", "3).cuda()"))
    path = tmp_path / "diagnosis.json"
    words = ("diagnose", "--device", choice, "--json", path, "script.py")
    ended = harness("stub", "run", "--", HARNESS, *words, cwd=tmp_path)
    notice, _, rest = ended.err.partition("\n")
    if notice != f"harness: {NOTICE}":
        pytest.skip(ended.err)
    if choice != "auto":
        assert (ended.code, ended.out, path.exists()) == (2, "", False)
        assert_sentence_and_advice(rest, "the stub")
        return
    diagnosis = json.loads(path.read_text())
    assert (ended.code, diagnosis["device"], diagnosis["findings"][0]["kind"]) == (1, "stub", "error")


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ("torch.fft.rfft(x)", "something that the stub does not do"),
        ("assert x.cumsum(0)[-1] > 0", "(AssertionError): try --device cpu"),
    ],
)
def test_what_the_stub_may_be_to_blame_for_is_told(tmp_path: Path, ends: str, words: str) -> None:
    (tmp_path / "script.py").write_text(f"import torch\nx = torch.ones(4).cuda() * 2\n{ends}\n")
    ended, diagnosis = diagnosed("script.py", cwd=tmp_path, device="stub")
    if ended.code == 2:
        pytest.skip(ended.err)
    assert ended.code == 1
    assert any(words in note for note in diagnosis["notes"]), diagnosis["notes"]


def test_without_a_compiler_it_falls_back_to_the_cpu_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(EVAL_BACKWARD)
    env = {"CC": "/nonexistent/cc", "XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": str(tmp_path)}
    ended, diagnosis = diagnosed("script.py", cwd=tmp_path, device="auto", env=env)
    if diagnosis["device"] == "cuda":
        pytest.skip("there is a GPU")
    assert (ended.code, diagnosis["device"]) == (0, "cpu")
    assert "no stub device" in diagnosis["notes"][0]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("absent.py",), "there is no script absent.py"),
        (("python", "train.py"), "without the interpreter"),
        (("folder",), "a folder without a __main__.py"),
        (("--json", "folder", "script.py"), "folder is a folder"),
        (("--json", "absent/x.json", "script.py"), "there is no folder for absent/x.json"),
        (("--divice", "cpu", "script.py"), "No such option"),
        ((), "Missing argument"),
    ],
)
def test_bad_usage_runs_nothing(tmp_path: Path, words: tuple[str, ...], hint: str) -> None:
    (tmp_path / "script.py").write_text("print('ran')")
    (tmp_path / "folder").mkdir()
    ended = harness("diagnose", *words, cwd=tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert_sentence_and_advice(ended.err, hint)


def test_it_imports_no_torch_itself(tmp_path: Path) -> None:
    code = "import sys, harness.diagnose.run, harness.console.diagnosed; assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=dict(os.environ), check=False)
    assert done.returncode == 0
