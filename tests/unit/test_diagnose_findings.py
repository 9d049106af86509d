"""Small programs, watched on the CPU: pattern, lines, counts, why train() did not help, and that the cure cures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from harness.diagnose.findings import Finding, Kind
from tests.watched import cured, findings, line_of


@pytest.fixture(autouse=True)
def leaves_pytorch_as_it_was() -> Iterator[None]:
    before = dict(vars(nn.RNNBase)), dict(vars(torch._VF)), nn.Module.train
    yield
    assert (dict(vars(nn.RNNBase)), dict(vars(torch._VF)), nn.Module.train) == before


def only(folder: Path, program: str) -> Finding:
    (finding,) = findings(folder, program)
    return finding


AFTER_EPOCH = """
def validate(net):
    net.eval()  # switch
    with torch.no_grad():
        net(x)

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net.train()  # train
for epoch in range(3):
    for batch in [x, x]:
        optimizer.zero_grad()
        net(batch).sum().backward()  # call
        optimizer.step()
    validate(net)
"""


def test_a_validation_after_the_epoch(tmp_path: Path) -> None:
    found = only(tmp_path, AFTER_EPOCH)
    assert (found.kind, found.pattern, found.module, found.kind_of_rnn, found.root) == (
        Kind.WOULD_RAISE,
        "eval-after-epoch",
        "rnn",
        "LSTM",
        "Net",
    )
    assert found.forward is not None
    assert found.call is not None
    assert found.switch is not None
    assert (found.forward.function, found.call.line) == ("Net.forward", line_of(tmp_path, "call"))
    assert found.switch.place.line == line_of(tmp_path, "switch")
    assert (found.switch.how, found.switch.through, found.switch.name) == ("eval()", "Net", "rnn")
    # Two train forwards and one of the validation came before; two backward passes; four steps ran in eval mode.
    assert (found.nth_forward, found.nth_backward, found.times) == (4, 3, 4)
    (before,) = found.train_calls
    assert (before.place.line, before.when) == (line_of(tmp_path, "train"), "before-switch")
    assert f"{tmp_path}/program.py:{line_of(tmp_path, 'train')}" in found.train_since
    assert found.cure.id == "train-first"
    (edit,) = found.cure.edits
    assert (edit.line, edit.code) == (line_of(tmp_path, "call") - 2, "net.train()")
    assert cured(tmp_path, found) == ()


def test_a_helper_in_mid_epoch_puts_the_mode_back(tmp_path: Path) -> None:
    program = AFTER_EPOCH.replace("    validate(net)\n", "        validate(net)\n")
    found = only(tmp_path, program)
    assert (found.pattern, found.cure.id) == ("eval-by-helper", "restore-mode")
    assert [edit.code for edit in found.cure.edits] == ["was_training = net.training", "try:"]
    assert found.cure.edits[1].end == "finally:\n    net.train(was_training)"
    assert cured(tmp_path, found) == ()


@pytest.mark.parametrize(
    ("last", "cure"),
    [
        ("return net(x)", "restore-mode"),
        ("[one.tolist() for one in net(x)]", "restore-mode"),
        ("return net", "train-first"),
        ("yield net(x)", "train-first"),
    ],
)
def test_a_helper_is_changed_only_where_that_is_simple(tmp_path: Path, last: str, cure: str) -> None:
    call = "list(helper(net))" if "yield" in last else "helper(net)"
    program = f"""
    def helper(net):
        net.eval()
        {last}

    net = Net().train()
    for step in range(3):
        net(x).sum().backward()
        {call}
    """
    found = only(tmp_path, program)
    assert (found.pattern, found.cure.id) == ("eval-by-helper", cure)
    assert cured(tmp_path, found) == ()


HELPERS = {
    "one line": """
def helper(net):
    net.eval()
""",
    "module by module": """
def helper(net):
    for module in net.modules():
        module.eval()
        print(module)
""",
    "a context": """
class helper:
    def __init__(self, net):
        self.net = net
        self.net.eval()
        print(self.net)
""",
}


@pytest.mark.parametrize("name", HELPERS)
def test_what_is_no_helper_leaves_the_cure_to_the_loop(tmp_path: Path, name: str) -> None:
    loop = "net = Net().train()\nfor step in range(3):\n    net(x).sum().backward()\n    helper(net)\n"
    found = only(tmp_path, HELPERS[name] + loop)
    assert (found.pattern, found.cure.id) == ("eval-by-helper", "train-first")
    assert cured(tmp_path, found) == ()


def test_train_after_the_forward_is_too_late(tmp_path: Path) -> None:
    found = only(
        tmp_path,
        """
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(2):
        net.eval()
        start = 0
        loss = net(x).sum() + start  # call
        net.train()  # late
        loss.backward()
        optimizer.step()
    """,
    )
    assert (found.pattern, found.cure.id, found.times) == ("train-before-backward", "train-first", 2)
    (late,) = found.train_calls
    assert (late.place.line, late.when) == (line_of(tmp_path, "late"), "after-forward")
    assert "too late" in late.why
    assert found.cure.edits[0].line == line_of(tmp_path, "call")
    assert cured(tmp_path, found) == ()


SALIENCY = """
net = Net(num_layers=2, dropout=0.5)
net.eval()
image = x.clone().requires_grad_()
scores = net(
    image,
)  # end
scores.sum().backward()
"""


def test_saliency_is_wrapped_where_it_stands(tmp_path: Path) -> None:
    found = only(tmp_path, SALIENCY)
    assert (found.pattern, found.cure.id) == ("eval-always", "eval-gradients")
    add, wrap = found.cure.edits
    assert (add.code, add.line) == ("import harness", 1)
    assert (wrap.line, wrap.end_line) == (line_of(tmp_path, "end") - 2, line_of(tmp_path, "end"))
    assert cured(tmp_path, found) == ()


def test_dynamic_evaluation_applies_the_gradient(tmp_path: Path) -> None:
    found = only(
        tmp_path,
        """
    net = Net().eval()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for batch in (x, x):
        optimizer.zero_grad()
        loss = net(batch).sum()
        loss.backward()
        optimizer.step()
    """,
    )
    assert (found.pattern, found.cure.id) == ("eval-then-use", "eval-gradients")
    assert cured(tmp_path, found) == ()


LOADED = {
    "from a file": "f = io.BytesIO()\ntorch.save(nn.Sequential(nn.GRU(4, 5)).eval(), f)\nf.seek(0)\n"
    "net = torch.load(f, weights_only=False)\n",
    "from a function": "def pretrained():\n    return Net().eval()\n\nnet = pretrained()\n",
    "a copy": "import copy\nnet = copy.deepcopy(Net().eval())\n",
    "asked again": "def pretrained():\n    return Net().eval()\n\nnet = pretrained()\nnet.eval()\n",
}


@pytest.mark.parametrize("name", LOADED)
def test_a_model_that_came_in_eval_mode_and_is_trained(tmp_path: Path, name: str) -> None:
    steps = """
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for batch in (x, x):
    optimizer.zero_grad()
    output = net(batch)
    (output[0] if isinstance(output, tuple) else output).sum().backward()
    optimizer.step()
"""
    found = only(tmp_path, f"import io\n{LOADED[name]}{steps}")
    cure = "eval-gradients" if name == "asked again" else "train-first"
    assert (found.pattern, found.cure.id) == ("eval-then-use", cure)
    assert cured(tmp_path, found) == ()


def test_an_inner_loop_within_training(tmp_path: Path) -> None:
    found = only(
        tmp_path,
        """
    def importance(net):
        net.eval()
        net(x).sum().backward()
        return [weight.grad.clone() for weight in net.parameters()]

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for task in range(2):
        net.train()
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()
        importance(net)
    """,
    )
    assert (found.pattern, found.cure.id) == ("inner-loop-in-eval", "eval-gradients")
    assert cured(tmp_path, found) == ()


def test_a_frozen_rnn_between_parts_that_train(tmp_path: Path) -> None:
    found = only(
        tmp_path,
        """
    net = Net()
    net.train()
    net.rnn.eval().requires_grad_(False)
    optimizer = torch.optim.SGD([*net.encoder.parameters(), *net.head.parameters()], lr=0.1)
    loss = net(x).sum()
    loss.backward()
    optimizer.step()
    """,
    )
    assert (found.pattern, found.cure.id) == ("rnn-eval-rest-train", "eval-gradients")
    assert found.switch is not None
    assert (found.switch.through, found.switch.name) == ("LSTM", "")
    assert cured(tmp_path, found) == ()


REUSED = """
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net.eval()
kept = {forward}
net.train()
loss = (net(x) - kept).square().sum()
loss.backward()
optimizer.step()
"""


@pytest.mark.parametrize(
    ("forward", "cure"), [("net(x)", "no-grad"), ("net(x)[0]", "no-grad"), ("2 * net(x) + x.sum()", "detach")]
)
def test_an_output_of_eval_in_a_training_loss(tmp_path: Path, forward: str, cure: str) -> None:
    found = only(tmp_path, REUSED.format(forward=forward))
    assert (found.pattern, found.cure.id) == ("eval-output-reused", cure)
    assert cured(tmp_path, found) == ()


def test_a_target_network_whose_gradient_nobody_uses(tmp_path: Path) -> None:
    found = only(
        tmp_path,
        """
    import copy
    net = Net()
    target = copy.deepcopy(net).eval()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loss = (net(x) - target(x)[0].abs()).sum()
    loss.backward()
    optimizer.step()
    """,
    )
    assert (found.pattern, found.cure.id) == ("eval-output-reused", "detach")
    assert cured(tmp_path, found) == ()


def test_cudnn_off_around_the_backward_alone(tmp_path: Path) -> None:
    found = only(
        tmp_path,
        """
    net = Net().eval()
    loss = net(x).sum()
    with torch.backends.cudnn.flags(enabled=False):
        loss.backward()
    """,
    )
    assert (found.pattern, found.cure.id) == ("eval-cudnn-off-backward", "cudnn-off-forward")
    assert cured(tmp_path, found) == ()


def test_a_backward_without_a_graph(tmp_path: Path) -> None:
    found = only(
        tmp_path,
        """
    net = Net().eval()
    with torch.no_grad():
        loss = net(x).sum()
    loss.backward()
    """,
    )
    assert (found.kind, found.pattern, found.cure.id) == (Kind.ERROR, "eval-no-grad", "enable-grad")
    assert cured(tmp_path, found) == ()


def test_training_goes_on_in_eval_mode_where_no_device_raises(tmp_path: Path) -> None:
    with torch.backends.cudnn.flags(enabled=False):
        found = only(tmp_path, AFTER_EPOCH)
        assert (found.kind, found.pattern, found.cure.id) == (Kind.WARNING, "mode-not-restored", "train-first")
        assert cured(tmp_path, found) == ()


TRAIN_IN_FORWARD = """
class Eager(Net):
    def forward(self, x):
        {switch}  # switch
        return super().forward(x)

net = Eager(num_layers=2, dropout={dropout})
net.eval()
for step in range(2):
    net(x).sum().backward()
"""


def test_train_inside_forward(tmp_path: Path) -> None:
    found = only(tmp_path, TRAIN_IN_FORWARD.format(switch="self.train()", dropout=0.5))
    assert (found.kind, found.pattern, found.cure.id) == (Kind.WARNING, "train-in-forward", "remove-train")
    assert found.switch is not None
    assert found.switch.place.line == line_of(tmp_path, "switch")
    assert cured(tmp_path, found) == ()


def test_the_rnn_alone_in_train_without_dropout_is_no_train_in_forward(tmp_path: Path) -> None:
    assert findings(tmp_path, TRAIN_IN_FORWARD.format(switch="self.rnn.train()", dropout=0.0)) == ()


def test_a_forward_that_puts_back_its_own_change_is_left_alone(tmp_path: Path) -> None:
    program = TRAIN_IN_FORWARD.format(switch="was = self.training; self.eval(); self.train(was)", dropout=0.5)
    assert findings(tmp_path, program.replace("net.eval()", "net.train()")) == ()


FROZEN = """
net = Net(num_layers=2, dropout=0.5).train()
net.rnn.requires_grad_(False)
net(x).sum().backward()
net.rnn.requires_grad_({then})
net(x).sum().backward()
"""


def test_a_frozen_rnn_with_its_dropout_on(tmp_path: Path) -> None:
    found = only(tmp_path, FROZEN.format(then=False))
    assert (found.kind, found.pattern, found.cure.id) == (Kind.WARNING, "frozen-dropout-on", "dropout-zero")
    assert found.times == 2
    assert cured(tmp_path, found) == ()


def test_an_rnn_that_is_frozen_for_a_while_is_not_frozen(tmp_path: Path) -> None:
    assert findings(tmp_path, FROZEN.format(then=True)) == ()


ALONE = """
net = Net(num_layers=2, dropout={dropout}).eval()
net.rnn.train()
{optimizer}
net(x).sum().backward()
"""


@pytest.mark.parametrize(
    ("dropout", "optimizer", "warned"),
    [(0.5, "", True), (0.0, "", False), (0.5, "trainer = torch.optim.SGD(net.rnn.parameters(), lr=0.1)", False)],
)
def test_the_rnn_alone_in_train(tmp_path: Path, dropout: float, optimizer: str, warned: bool) -> None:
    found = findings(tmp_path, ALONE.format(dropout=dropout, optimizer=optimizer))
    assert [one.pattern for one in found] == ["rnn-train-rest-eval"] * warned
    for one in found:
        assert cured(tmp_path, one) == ()


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ("net.head.train()", "that Linear does not contain the LSTM"),
        ("copy.deepcopy(net).train()", "contains a copy of the LSTM"),
        ("net.training = True", "`training` of Net alone was set"),
        ("pass", "No train() was called, before or since."),
    ],
)
def test_why_train_did_not_help(tmp_path: Path, calls: str, words: str) -> None:
    found = findings(
        tmp_path,
        f"""
    import copy

    net = Net()
    net.eval()
    {calls}
    loss = net(x).sum()
    loss.backward()
    """,
    )
    assert words in found[0].train_since


def test_train_false_is_told(tmp_path: Path) -> None:
    found = only(tmp_path, "net = Net()\nnet.train(False)\nnet(x).sum().backward()\n")
    assert "train(False) is eval()" in found.train_since
