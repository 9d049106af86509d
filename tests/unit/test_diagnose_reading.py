"""One finding for one thing that is wrong, whoever called the lines that it is about."""

from __future__ import annotations

from pathlib import Path

from tests.watched import findings

SALIENCY = """
def gradient(net, x):
    return torch.autograd.grad(net(x).sum(), list(net.parameters()))

net = Net()
net.eval()
for _ in range(2):
    one, other = gradient(net, x), gradient(net, x)
print(gradient(net, x)[0].shape)
"""


def test_the_same_lines_called_from_several_places_are_one_finding(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, SALIENCY)
    assert (found.pattern, found.times) == ("eval-always", 5)
    assert (found.nth_forward, found.nth_backward) == (1, 1)


def test_two_rnns_are_two_findings_and_copies_of_one_are_one(tmp_path: Path) -> None:
    program = """
import copy
def step(net):
    net(x).sum().backward()
net = Net().eval()
for _ in range(3):
    step(copy.deepcopy(net))
"""
    (found,) = findings(tmp_path, program)
    assert found.times == 3
    both = "net = nn.Sequential(Net(), Net()).eval()\nfor one in net:\n    one(x).sum().backward()\n"
    assert len(findings(tmp_path / "both", both)) == 1, "of the same name and in the same lines"
    apart = (
        "net = nn.ModuleList([nn.LSTM(4, 5), nn.GRU(4, 5)]).eval()\nfor one in net:\n    one(x)[0].sum().backward()\n"
    )
    assert {found.kind_of_rnn for found in findings(tmp_path / "apart", apart)} == {"LSTM", "GRU"}
