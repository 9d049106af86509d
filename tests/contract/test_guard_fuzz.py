"""Random module trees and random programs: the guard refuses on a CPU exactly the steps that cuDNN's check refuses.

2000 programs in the normal suite, always the same; HARNESS_FUZZ=3000 (``make fuzz``) runs that many, different ones
each time.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import harness
from harness import stub
from harness.errors import StubUnavailableError
from tests.contract.guard_fuzz.interpreter import run

REPOSITORY = Path(__file__).parents[2]
PROGRAMS = int(os.environ.get("HARNESS_FUZZ", "0"))

CALLS = ("packed", "state", "checkpoint", "checkpoint-reentrant", "copied", "forward", "functional")
USES = ("h_n", "h_n-in-place", "c_n", "one-layer", "last-moment", "detached", "no-gradient", "hooked", "nothing")


def often(*usual: str, seldom: tuple[str, ...]) -> st.SearchStrategy[str]:
    return st.one_of(st.sampled_from(usual), st.sampled_from(usual), st.sampled_from(seldom))


indices = st.integers(0, 7)
recurrent = st.fixed_dictionaries(
    {
        "kind": st.just("recurrent"),
        "rnn": st.sampled_from(["lstm", "gru", "rnn-tanh", "rnn-relu", "lstm-proj", "own-lstm"]),
        "layers": st.integers(1, 2),
        "bidirectional": st.booleans(),
        "bias": st.booleans(),
        "batch_first": st.booleans(),
        "call": st.one_of(st.just("plain"), st.sampled_from((*CALLS, "no_grad", "cudnn-off"))),
        "use": st.one_of(st.just("output"), st.sampled_from(USES)),
        "shared": st.one_of(st.none(), st.none(), indices),
    }
)
plain = st.fixed_dictionaries({"kind": st.sampled_from(["linear", "dropout", "norm"])})
cell = st.fixed_dictionaries({"kind": st.just("cell"), "cell": st.sampled_from(["LSTMCell", "GRUCell", "RNNCell"])})
trees = st.recursive(
    st.one_of(recurrent, recurrent, recurrent, plain, cell),
    lambda parts: st.fixed_dictionaries({"kind": st.just("box"), "parts": st.lists(parts, min_size=1, max_size=3)}),
    max_leaves=5,
)
whole_trees = st.one_of(
    st.tuples(recurrent, st.lists(trees, max_size=2)).map(
        lambda parts: {"kind": "box", "parts": [parts[0], *parts[1]]}
    ),
    st.tuples(recurrent, st.lists(trees, max_size=2)).map(
        lambda parts: {"kind": "box", "parts": [*parts[1], parts[0]]}
    ),
    trees,
)


def step(name: str, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    return st.tuples(st.just(name), st.fixed_dictionaries(arguments))


whole = st.one_of(st.just(0), st.just(0), indices)
# What a strategy names first it tries most.
mode = step("mode", on=whole, how=often("eval", "train", seldom=("train-false", "set-true", "set-false")))
forward = step(
    "forward",
    on=whole,
    source=st.one_of(st.sampled_from(["plain", "with-grad"]), st.sampled_from(["plain", "with-grad", 0, 1, 2])),
    batch=st.sampled_from([2, 2, 2, 2, 2, 1, 0]),
    under=often("", seldom=("no_grad", "inference", "cudnn-off", "cudnn-on", "autocast")),
)
backward = step(
    "backward",
    of=st.one_of(st.just([0]), st.lists(st.integers(0, 3), min_size=1, max_size=2)),
    to=often("everything", seldom=("input", "first-weight", "last-weight")),
    retain=st.booleans(),
    under=often("", seldom=("cudnn-off",)),
)
seldom = st.one_of(
    step("freeze", on=whole, trains=st.booleans()), step("cudnn", enabled=st.booleans()), step("detach", of=indices)
)
rounds = st.one_of(
    st.tuples(mode, forward, backward),
    st.tuples(mode, forward, mode, backward),
    st.tuples(forward, mode, forward, backward, backward),
    st.tuples(seldom, forward, backward),
    st.tuples(forward, backward),
    st.tuples(st.one_of(mode, forward, backward, seldom)),
)
programs = st.fixed_dictionaries(
    {
        "dtype": often("float32", seldom=("float64", "float16", "bfloat16")),
        "tree": whole_trees,
        "steps": st.lists(rounds, min_size=1, max_size=5).map(lambda several: [*itertools.chain(*several)]),
    }
)


class Stub:
    """One process of the stub device that runs program after program."""

    def __init__(self) -> None:
        environment = stub.ensure().environment(os.environ) | {"PYTHONPATH": str(REPOSITORY)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.contract.guard_fuzz.child"],
            env=environment,
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self, program: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(program) + "\n")
        self._process.stdin.flush()

    def verdicts(self) -> list[str]:
        assert self._process.stdout
        return json.loads(self._process.stdout.readline())

    def end(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def on_stub() -> Iterator[Stub]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        process = Stub()
    except StubUnavailableError as error:
        pytest.skip(str(error))
    yield process
    process.end()
    torch.set_num_threads(threads)


def until_a_neighbour(guarded: list[str], expected: list[str]) -> int:
    """How many verdicts come before the first failure of another kind that only a GPU has.

    From there on a program is in another state than on a CPU. A checkpoint that is computed again without cuDNN does
    not match what cuDNN saved. And cuDNN's RNN is one node: a gradient for one of its weights frees all of it, where
    a CPU keeps the part that was not needed for the next gradient.
    """
    for at, (ours, theirs) in enumerate(zip(guarded, expected, strict=True)):
        freed = ours == "ok" and "Trying to backward through the graph a second time" in theirs
        if freed or theirs.startswith("error: CheckpointError"):
            return at
    return len(expected)


@pytest.mark.timeout(3600)
def test_the_guard_on_a_cpu_and_cudnn_on_the_stub_agree_on_every_step(on_stub: Stub) -> None:
    seen: Counter[str] = Counter()

    @settings(
        max_examples=PROGRAMS or 2000,
        derandomize=not PROGRAMS,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(programs)
    def agree(program: dict[str, Any]) -> None:
        on_stub.begin(program)
        with harness.guard():
            guarded = run(program, "cpu")
        expected = on_stub.verdicts()
        judged = until_a_neighbour(guarded, expected)
        seen.update(verdict.partition(":")[0] for verdict in expected[:judged])
        seen["programs"] += 1
        seen["programs refused"] += "refused" in expected[:judged]
        seen["programs cut short"] += judged < len(expected)
        assert guarded[:judged] == expected[:judged]

    agree()
    print(dict(seen))
    assert seen["programs"] >= (PROGRAMS or 2000)
    assert seen["programs cut short"] < seen["programs"] / 10  # what is cut off is not compared
    assert seen["programs refused"] > seen["programs"] / 20
    assert seen["ok"] > seen["refused"] > 0
