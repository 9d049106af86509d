"""What the backward that is going on was called for: does it feed an optimizer, and which nodes does it go through?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from harness.diagnose.witness.passing import calling_backward, nodes_of, reaches_optimizer
from tests.watched import findings


class Parts:
    """A loss of two weights, of which an optimizer holds the first; ``seen`` is told during its backward."""

    def __init__(self) -> None:
        self.held, self.free = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
        self.optimizer = torch.optim.SGD([self.held], lr=0.1)
        self.seen: list[bool] = []

    def loss(self, *weights: Tensor) -> Tensor:
        total = torch.stack([weight.sum() for weight in weights]).sum()
        total.register_hook(lambda _: self.seen.append(reaches_optimizer(calling_backward(), [self.optimizer])))
        return total * 1


@pytest.mark.parametrize(
    ("backward", "reached"),
    [
        (lambda parts: parts.loss(parts.held, parts.free).backward(), True),
        (lambda parts: torch.autograd.backward([parts.loss(parts.free), parts.held.sum()]), True),
        (lambda parts: parts.loss(parts.free).backward(), False),
        (lambda parts: parts.loss(parts.held.detach(), parts.free).backward(), False),
        (lambda parts: parts.loss(parts.held, parts.free).backward(inputs=[parts.free]), False),
        (lambda parts: parts.loss(parts.held, parts.free).backward(inputs=[parts.held]), True),
        (lambda parts: torch.autograd.grad(parts.loss(parts.held, parts.free), [parts.held]), False),
    ],
)
def test_whether_an_optimizer_gets_a_gradient(backward: Callable[[Parts], object], reached: bool) -> None:
    parts = Parts()
    backward(parts)
    assert parts.seen == [reached]


def test_outside_a_backward_nothing_is_reached() -> None:
    assert not reaches_optimizer(calling_backward(), [Parts().optimizer])


def test_every_node_is_met_once() -> None:
    x = torch.ones(2, requires_grad=True)
    for _ in range(40):  # 2 ** 40 paths
        x = x + x
    assert len(list(nodes_of([x, x.detach()]))) == 41


READ = """
net, other = Net(), Net().eval()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    net(x).sum().backward()
    optimizer.step()
other(x).sum().backward()
print(sum(weight.grad.sum() for weight in other.parameters()).shape)
"""


def test_a_gradient_that_no_optimizer_wants_may_be_read_all_the_same(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, READ)
    assert (found.pattern, found.cure.id) == ("eval-always", "eval-gradients")
