"""Cures of programs that are laid out awkwardly: the edits find the right lines, and the result is cured."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from harness.diagnose import edits
from harness.diagnose.edits import Edit, EditAction, apply_to
from harness.diagnose.reading import findings_of
from tests.watched import PRELUDE, cured, findings, seen

IN_EVAL = {
    "one line loop": "for batch in [x, x]: loss = net(batch).sum(); loss.backward()",
    "two on a line": "start = 0; loss = net(x).sum() + start\nloss.backward()",
    "lambda": "score = lambda batch: net(batch).sum()\nscore(x).backward()",
    "generator": "loss = sum(net(batch).sum() for batch in [x, x])\nloss.backward()",
    "list": "losses = [net(batch).sum() for batch in [x, x]]\nsum(losses).backward()",
    "lambda in a call": "losses = list(map(lambda batch: net(batch).sum(), [x, x]))\nsum(losses).backward()",
    "condition": "if (loss := net(x).sum()).item() > -1e9:\n    loss.backward()\nelse:\n    pass",
    "second condition": "if x is None:\n    pass\nelif (loss := net(x).sum()) is not None:\n    loss.backward()",
    "while": "while (loss := net(x).sum()).requires_grad:\n    loss.backward()\n    break",
    "tabs": "def step():\n\tif True:\n\t\tloss = net(x).sum()\n\t\tloss.backward()\n\nstep()",
    "string": "loss = net(x).sum() + len('''a\n  b''')\nassert len('''a\n  b''') == 5\nloss.backward()",
    "returned": "def loss():\n    return net(x).sum()\n\nloss().backward()",
    "method": "class A:\n    def __init__(self):\n        self.it = net\n    def go(self):\n"
    "        self.it(x).sum().backward()\n\nA().go()",
    "closure": "def outer(inside):\n    def inner():\n        inside(x).sum().backward()\n    inner()\n\nouter(net)",
    "in a dict": "nets = {'a': nn.Sequential(net)}\nnets['a'].eval()\ndel net\nnets['a'](x).sum().backward()",
    "made on the spot": "def made():\n    return Net().eval()\n\nmade()(x).sum().backward()",
    "coroutine": "import asyncio\nasync def step():\n    loss = net(x).sum()\n"
    "    loss.backward()\n\nasyncio.run(step())",
    "called twice": "loss = net(x).sum() + net(2 * x).sum()\nloss.backward()",
    "the rnn itself": "rnn = net.rnn\nrnn(x)[0].sum().backward()",
    "its forward": "net.rnn.forward(x)[0].sum().backward()",
    "another method": "net.encode = lambda batch: net.rnn(batch)[0]\nnet.encode(x).sum().backward()",
    "grad": "loss = net(x).sum()\ntorch.autograd.grad(loss, list(net.parameters()))",
    "with": "with torch.enable_grad(): loss = net(x).sum()\nloss.backward()",
    "try": "try:\n    loss = net(x).sum()\nfinally:\n    pass\nloss.backward()",
    "one line function": "def slope(net, x): return torch.autograd.grad(net(x).sum(), list(net.parameters()))\n"
    "slope(net, x)",
    "one line function with a long head": "def loss(net,\n         x): y = net(x); return y.sum()\n"
    "loss(net, x).backward()",
    "one line method": "class A:\n    def loss(self): return net(x).sum()\n\nA().loss().backward()",
    "else": "if x is None: pass\nelse: loss = net(x).sum()\nloss.backward()",
    "except": "try: raise KeyError\nexcept KeyError: loss = net(x).sum()\nloss.backward()",
    "a case": "match 1:\n    case 1: net(x).sum().backward()",
    "long condition": "if (x is not None and\n        x.numel()): loss = net(x).sum()\nloss.backward()",
    "match": "match 1:\n    case 1:\n        net(x).sum().backward()",
}


@pytest.mark.parametrize("name", IN_EVAL)
def test_an_eval_gradient_is_allowed_where_it_stands(tmp_path: Path, name: str) -> None:
    found = findings(tmp_path, f"net = Net().eval()\n{IN_EVAL[name]}\n")
    assert {one.cure.id for one in found} == {"eval-gradients"}
    assert all(one.cure.edits for one in found)
    # A call in a lambda that is called twice from one line is one finding; two calls on one line are two.
    for one in found[:1]:
        rest = cured(tmp_path, one)
        assert [other.pattern for other in rest] == [], name


IN_TRAINING = {
    "loop of loops": """
    for epoch in range(2):
        for batch in [x, x]:
            for half in batch.split(1):
                net(half).sum().backward()
        validate(net)
    """,
    "a function per epoch": """
    def train_epoch():
        for batch in [x, x]:
            net(batch).sum().backward()

    for epoch in range(2):
        train_epoch()
        validate(net)
    """,
    "a function per step": """
    def step(batch):
        loss = net(batch).sum()
        loss.backward()

    for epoch in range(2):
        for batch in [x, x]:
            step(batch)
        validate(net)
    """,
    "a function that the validation calls too": """
    def loss_of(batch):
        return net(batch).sum()

    def validate(net):
        net.eval()
        with torch.no_grad():
            loss_of(x)
        assert not net.training

    for epoch in range(2):
        for batch in [x, x]:
            loss_of(batch).backward()
        validate(net)
    """,
    "the same in the lines of the loop": """
    def loss_of(batch):
        return net(batch).sum()

    for epoch in range(2):
        for batch in [x, x]:
            loss_of(batch).backward()
        net.eval()
        with torch.no_grad():
            print([loss_of(batch).item() for batch in [x]])
        assert not net.training
    """,
    "two calls below one function for both": """
    def scores(batch):
        assert torch.is_grad_enabled() or not net.training
        return net(batch)

    def loss_of(batch):
        return scores(batch).sum()

    def run(batches, *, learn=False):
        for batch in batches:
            loss = loss_of(batch)
            if learn:
                loss.backward()

    for epoch in range(2):
        run([x, x], learn=True)
        net.eval()
        with torch.no_grad():
            run([x])
    """,
    "called under another name": """
    def scores(batch):
        assert torch.is_grad_enabled() or not net.training
        return net(batch)

    def loss_of(batch):
        return scores(batch).sum()

    losses = {"train": loss_of, "test": loss_of}
    def train(batch):
        losses["train"](batch).backward()

    def test(batch):
        net.eval()
        with torch.no_grad():
            losses["test"](batch)

    for epoch in range(2):
        for batch in [x, x]:
            train(batch)
        test(x)
    """,
    "a function of the training below one for both": """
    def step(batch):
        net(batch).sum().backward()

    def test(batch):
        assert not net.training
        with torch.no_grad():
            net(batch)

    def run(batches, function):
        for batch in batches:
            function(batch)

    for epoch in range(2):
        run([x, x], step)
        net.eval()
        run([x], test)
    """,
    "a validation before training as well": """
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(batch):
        net(batch).sum().backward()
        optimizer.step()

    validate(net)
    for epoch in range(2):
        for batch in [x]:
            step(batch)
        validate(net)
    """,
    "a loop over nets": """
    for epoch in range(2):
        for one in [net]:
            one(x).sum().backward()
        validate(net)
    """,
    "a loop that is one line": """
    for epoch in range(2):
        for batch in [x, x]: net(batch).sum().backward()
        validate(net)
    """,
    "no inner loop": """
    for epoch in range(2):
        with torch.enable_grad():
            net(x).sum().backward()
        validate(net)
    """,
    "while": """
    left = 3
    while left:
        left -= 1
        net(x).sum().backward()
        validate(net)
    """,
    "phases": """
    for epoch in range(2):
        for phase in ("train", "val"):
            if phase == "val":
                net.eval()
            for batch in [x]:
                with torch.set_grad_enabled(phase == "train"):
                    loss = net(batch).sum()
                assert net.training is (phase == "train") or epoch
                if phase == "train":
                    loss.backward()
    """,
    "one line function": """
    def validate(net): net.eval(); net(x).detach()

    for epoch in range(2):
        for batch in [x]:
            net(batch).sum().backward()
            validate(net)
    """,
    "all in one line": """
    def validate(net): net.eval(); net(x).detach()
    def step(net): net(x).sum().backward()

    for _ in range(3): step(net); validate(net)
    """,
    "a loss in one line": """
    def loss(x): return net(x).sum()

    for epoch in range(2):
        for batch in [x, x]:
            loss(batch).backward()
        net.eval()
        loss(x).detach()
    """,
    "a callback": """
    class Callback:
        def __call__(self, net):
            if True:
                net.eval()
                net(x)

    callbacks = [Callback()]
    for step in range(4):
        net(x).sum().backward()
        for callback in callbacks:
            callback(net)
    """,
    "eval of a wrapper": """
    wrapper = nn.Sequential(net)
    for epoch in range(2):
        for batch in [x]:
            net(batch).sum().backward()
        wrapper.eval()
    """,
    "eval of the rnn alone": """
    for epoch in range(2):
        for batch in [x]:
            net(batch).sum().backward()
        net.rnn.eval()
    """,
}

VALIDATE = """
def validate(net):
    net.eval()
    with torch.no_grad():
        net(x)

net = Net().train()
"""


@pytest.mark.parametrize("name", IN_TRAINING)
def test_training_goes_on_in_train_mode(tmp_path: Path, name: str) -> None:
    found = findings(tmp_path, VALIDATE + textwrap.dedent(IN_TRAINING[name]))
    assert found
    assert {one.pattern for one in found} <= {"eval-after-epoch", "eval-by-helper"}
    assert all(one.cure.edits for one in found)
    assert cured(tmp_path, found[0]) == (), name


def test_an_import_goes_behind_the_future(tmp_path: Path) -> None:
    start = '"""What it is about."""\n\nfrom __future__ import annotations\n\n'
    program = f"{start}{PRELUDE}\nnet = Net().eval()\nnet(x).sum().backward()\n"
    found = seen(tmp_path, program)
    (finding,) = findings_of(list(found.facts.values()), found.times)
    ((_, text),) = edits.apply(finding.cure.edits).items()
    assert text.startswith(f"{start}import harness\nimport torch\n")


TEXT = "if a:\n\tb = '''x\n  y'''\n\tc()\nd()\n"


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (Edit("f", 4, EditAction.INSERT_BEFORE, "e()\nf()"), "if a:\n\tb = '''x\n  y'''\n\te()\n\tf()\n\tc()\nd()\n"),
        (Edit("f", 2, EditAction.REPLACE, "pass", end_line=3), "if a:\n\tpass\n\tc()\nd()\n"),
        (
            Edit("f", 2, EditAction.WRAP, "try:", end_line=4, end="finally:\n\tz()"),
            "if a:\n\ttry:\n\t\tb = '''x\n  y'''\n\t\tc()\n\tfinally:\n\t\tz()\nd()\n",
        ),
    ],
)
def test_edits(edit: Edit, text: str) -> None:
    assert apply_to(TEXT, [edit]) == text
    windows = apply_to(TEXT.replace("\n", "\r\n"), [edit])
    assert windows == text.replace("\n", "\r\n")


def test_edits_go_from_the_last_line_to_the_first_and_the_same_one_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "f.py"
    path.write_text("# coding: latin-1\na = 'ä'\nb = 2\n", encoding="latin-1")
    first = Edit(str(path), 2, EditAction.INSERT_BEFORE, "import harness")
    wrap = Edit(str(path), 2, EditAction.WRAP, "if True:", end_line=3)
    changed = edits.apply([first, wrap, first])
    assert changed == {str(path): "# coding: latin-1\nimport harness\nif True:\n    a = 'ä'\n    b = 2\n"}


SEVERAL = {
    "one behind the other": (
        "eval-gradients",
        "one, two = Net().eval(), nn.GRU(1, 1).eval()\nloss = two(one(x))[0].sum()\nloss.backward()\n",
    ),
    "side by side": (
        "eval-gradients",
        "one, two = Net().eval(), Net().eval()\nfirst = one(x)\nsecond = two(x)\n(first + second).sum().backward()\n",
    ),
    "one net, two lines": (
        "eval-gradients",
        "one = Net().eval()\nfirst = one(x)\nsecond = one(2 * x)\n(first + second).sum().backward()\n",
    ),
    "one helper for both": (
        "train-first",
        "def show(one, two):\n    one.eval()\n    two.eval()\n    print(one(x).shape, two(x).shape)\n\n"
        "one, two = Net(), Net()\nfor step in range(3):\n    (one(x) + two(x)).sum().backward()\n    show(one, two)\n",
    ),
    "one eval for both": (
        "restore-mode",
        "def show(both):\n    both.eval()\n    print(both[0](x).shape)\n\n"
        "both = nn.ModuleList([Net(), Net()])\nfor step in range(3):\n    (both[0](x) + both[1](x)).sum().backward()\n"
        "    show(both)\n",
    ),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_the_first_cure_cures_all_that_one_backward_needs(tmp_path: Path, name: str) -> None:
    cure, program = SEVERAL[name]
    found = findings(tmp_path, program)
    assert found[0].cure.id == cure
    assert cured(tmp_path, found[0]) == ()


def test_what_is_merely_in_eval_mode_is_no_part_of_it(tmp_path: Path) -> None:
    found = findings(
        tmp_path, "one, two = Net().eval(), Net().eval()\nunused = two(x)\nloss = one(x).sum()\nloss.backward()\n"
    )
    assert [edit.code for edit in found[0].cure.edits] == ["import harness", "with harness.eval_gradients(one):"]


SILENT = {
    "dropout-zero": "class Frozen(Net):\n    def forward(self, x): return self.head(self.rnn(x)[0])\n\n"
    "net = Frozen(num_layers=2, dropout=0.5)\nnet.rnn.requires_grad_(False)\nnet(x).sum().backward()\n",
    "remove-train": "class Always(Net):\n    def forward(self, x): self.train(); return self.rnn(x)[0].sum()\n\n"
    "net = Always().eval()\nwith torch.no_grad(): net(x)\n",
    "detach": "def teach(teacher, student): return (teacher(x) - student(x)).pow(2).sum()\n\n"
    "teacher, student = Net().eval(), Net()\noptimizer = torch.optim.SGD(student.parameters(), lr=0.1)\n"
    "teach(teacher, student).backward()\noptimizer.step()\nassert student.rnn.weight_hh_l0.grad is not None\n",
}


@pytest.mark.parametrize("cure", SILENT)
def test_the_line_of_a_function_that_is_one_line_is_not_torn_from_it(tmp_path: Path, cure: str) -> None:
    (found,) = findings(tmp_path, SILENT[cure])
    assert found.cure.id == cure
    assert cured(tmp_path, found) == ()


def test_what_else_stands_beside_train_in_forward_stays(tmp_path: Path) -> None:
    program = (
        "class Always(Net):\n    def forward(self, x):\n        self.train(); y = self.rnn(x)[0]\n        return y\n"
    )
    (found,) = findings(tmp_path, f"{program}\nnet = Always().eval()\nwith torch.no_grad(): net(x)\n")
    assert [edit.code for edit in found.cure.edits] == ["pass; y = self.rnn(x)[0]"]
    assert cured(tmp_path, found) == ()


def test_a_mode_is_put_back_in_the_indentation_of_its_file(tmp_path: Path) -> None:
    helper = "def show(net):\n\tif True:\n\t\tnet.eval()\n\t\tprint(net(x).shape)\n\n"
    loop = "net = Net()\nfor step in range(3):\n\tnet(x).sum().backward()\n\tshow(net)\n"
    found = findings(tmp_path, helper + loop)
    assert found[0].cure.id == "restore-mode"
    assert [edit.end for edit in found[0].cure.edits] == [None, "finally:\n\tnet.train(was_training)"]
    assert cured(tmp_path, found[0]) == ()


NO_GRAPH = {
    "decorated, in one line": ("@torch.no_grad()\ndef infer(): return net(x)\n", False),
    "inference mode, in one line": ("@torch.inference_mode()\ndef infer(): return net(x)\n", False),
    "around the forward": ("def infer():\n    with torch.no_grad():\n        return net(x)\n", True),
    "decorated": ("@torch.no_grad()\ndef infer():\n    return net(x)\n", True),
}


@pytest.mark.parametrize("name", NO_GRAPH)
def test_a_graph_is_recorded_where_it_helps_or_only_in_words(tmp_path: Path, name: str) -> None:
    program, edited = NO_GRAPH[name]
    (found,) = findings(tmp_path, f"net = Net().eval()\n{program}\ninfer().sum().backward()\n")
    assert found.pattern == "eval-no-grad"
    assert bool(found.cure.edits) is edited
    if edited:
        assert cured(tmp_path, found) == ()
    elif "no_grad" in program:
        assert "within infer, which turns graphs off" in found.cure.sentence
