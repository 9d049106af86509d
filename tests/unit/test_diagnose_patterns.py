"""Whole programs in the patterns of public reports, written anew: what each is called, and that its cure cures it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.watched import cured, findings

PROGRAMS = {
    "an attack within training": (
        "eval-always",
        "eval-gradients",
        """
def attack(model, x, y):
    model.eval()
    adv = x.clone().requires_grad_()
    for _ in range(2):
        loss = (model(adv) - y).square().mean()
        g, = torch.autograd.grad(loss, adv)
        adv = (adv + 0.1 * g.sign()).detach().requires_grad_()
    return adv.detach()
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
y = torch.ones(2, 3, 1)
for step in range(3):
    adv = attack(net, x, y)
    net.train()
    opt.zero_grad()
    (net(adv) - y).square().mean().backward()
    opt.step()
""",
    ),
    "both modes in one loss": (
        "eval-output-reused",
        "no-grad",
        """
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(2):
    net.train()
    noisy = net(x)
    net.eval()
    clean = net(x)
    loss = (noisy - clean).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "a teacher in the graph": (
        "eval-output-reused",
        "detach",
        """
import copy
net = Net()
teacher = copy.deepcopy(net)
teacher.eval()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(2):
    net.train()
    loss = (net(x) - teacher(x)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "a closure": (
        "eval-after-epoch",
        "train-first",
        """
net = Net()
opt = torch.optim.LBFGS(net.parameters(), max_iter=2)

def closure():
    opt.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    return loss
for step in range(2):
    opt.step(closure)
    net.eval()
    net(x)
""",
    ),
    "a trainer that logs": (
        "eval-by-helper",
        "restore-mode",
        """
class Trainer:

    def __init__(self):
        self.model = Net()
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def step(self, batch):
        loss = self.model(batch).sum()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

    def run_epoch(self):
        self.model.train()
        for b in [x, x]:
            self.step(b)
            self.log(b)

    def log(self, b):
        self.model.eval()
        with torch.no_grad():
            self.model(b)

    def fit(self):
        for e in range(2):
            self.run_epoch()
Trainer().fit()
""",
    ),
    "saliency by a hook": (
        "eval-always",
        "eval-gradients",
        """
net = Net().eval()
acts = []
h = net.encoder.register_forward_hook(lambda m, i, o: (o.retain_grad(), acts.append(o))[0])
out = net(x)
out[..., 0].sum().backward()
h.remove()
""",
    ),
    "accumulated gradients": (
        "eval-after-epoch",
        "train-first",
        """
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net.train()
for i in range(6):
    loss = net(x).sum() / 2
    loss.backward()
    if (i + 1) % 2 == 0:
        opt.step()
        opt.zero_grad()
        net.eval()
        with torch.no_grad():
            net(x)
""",
    ),
    "train(mode)": (
        "eval-after-epoch",
        "train-first",
        """
def set_mode(net, train):
    net.train(train)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    set_mode(net, epoch == 0)
    for b in [x]:
        loss = net(b).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
    ),
    "train() on the other model": (
        "eval-after-epoch",
        "train-first",
        """
a, b = (Net(), Net())
opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
for epoch in range(2):
    a.train()
    a.train()
    loss = (a(x) + b(x)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    a.eval()
    b.eval()
""",
    ),
    "a frozen part": (
        "rnn-eval-rest-train",
        "eval-gradients",
        """
net = Net()
net.rnn.requires_grad_(False)
opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
for epoch in range(2):
    net.train()
    net.rnn.eval()
    loss = net(x).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "an input that learns": (
        "eval-then-use",
        "eval-gradients",
        """
net = Net().eval()
z = torch.zeros(2, 3, 4, requires_grad=True)
opt = torch.optim.Adam([z])
for i in range(3):
    opt.zero_grad()
    net(z).square().sum().backward()
    opt.step()
""",
    ),
    "importance after a task": (
        "eval-always",
        "eval-gradients",
        """
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)

def train():
    net.train()
    for b in [x, x]:
        opt.zero_grad()
        net(b).sum().backward()
        opt.step()

def fisher():
    net.eval()
    for b in [x]:
        net.zero_grad()
        net(b).square().sum().backward()
    return [p.grad ** 2 for p in net.parameters()]
train()
f = fisher()
""",
    ),
    "a training called again from another line": (
        "eval-after-epoch",
        "train-first",
        """
net = Net(num_layers=2, dropout=0.5)
opt = torch.optim.SGD(net.parameters(), lr=0.1)

def train():
    for b in [x, x]:
        opt.zero_grad()
        net(b).sum().backward()
        opt.step()
train()
net.eval()
with torch.no_grad():
    net(x)
train()
""",
    ),
    "a step called again from another line, and its forward in a function of its own": (
        "eval-after-epoch",
        "train-first",
        """
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)

def loss(b):
    return net(b).square().mean()

def update(value):
    opt.zero_grad()
    value.backward()
    opt.step()

def step(b):
    update(loss(b))
step(x)
net.eval()
print(float(net(x).sum().detach()))
step(x)
""",
    ),
    "a saliency that shares the training's function for gradients": (
        "eval-always",
        "eval-gradients",
        """
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)

def gradients(b):
    net.zero_grad()
    net(b).square().mean().backward()

def train():
    for b in [x, x]:
        gradients(b)
        opt.step()

def saliency():
    net.eval()
    gradients(x)
    return [p.grad.abs() for p in net.parameters()]
train()
saliency()
""",
    ),
    "a learning in eval mode that shares the training's function for gradients": (
        "eval-then-use",
        "eval-gradients",
        """
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)

def gradients(b):
    opt.zero_grad()
    net(b).square().mean().backward()

def train():
    for b in [x, x]:
        gradients(b)
        opt.step()

def adapt():
    net.eval()
    for b in [x, x]:
        gradients(b)
        opt.step()
train()
adapt()
""",
    ),
    "a student copied from a teacher in eval mode": (
        "eval-then-use",
        "train-first",
        """
import copy
teacher = Net().eval()
student = copy.deepcopy(teacher)
opt = torch.optim.SGD(student.parameters(), lr=0.1)
for step in range(3):
    with torch.no_grad():
        told = teacher(x)
    loss = (student(x) - told).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    ),
    "a copy for each sentence, adapted to it in eval mode": (
        "eval-then-use",
        "eval-gradients",
        """
import copy
net = Net().eval()
for b in [x, x]:
    adapted = copy.deepcopy(net)
    opt = torch.optim.SGD(adapted.parameters(), lr=0.1)
    for step in range(2):
        opt.zero_grad()
        adapted(b).square().mean().backward()
        opt.step()
""",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_called_what_it_is_and_cured(tmp_path: Path, name: str) -> None:
    pattern, cure, program = PROGRAMS[name]
    found = findings(tmp_path, program)
    assert [(one.pattern, one.cure.id) for one in found] == [(pattern, cure)]
    assert cured(tmp_path, found[0]) == ()


def test_dropout_in_eval_mode_on_purpose_is_left_alone(tmp_path: Path) -> None:
    program = """
net = Net(num_layers=2, dropout=0.5).eval()
for module in net.modules():
    if isinstance(module, (nn.Dropout, nn.LSTM)):
        module.train()
with torch.no_grad():
    samples = torch.stack([net(x) for _ in range(3)])
"""
    assert findings(tmp_path, program) == ()


CELLS = """
names = dict(Net=Net, torch=torch, x=x)
cells = ["net = Net(); opt = torch.optim.SGD(net.parameters(), lr=0.1)", {}]
for number, cell in enumerate(cells):
    exec(compile(cell, f"<cell {{number}}>", "exec"), names)
"""


def test_in_cells_without_a_source_a_training_is_told_from_a_gradient_that_nobody_applies(tmp_path: Path) -> None:
    step = "opt.zero_grad(); net(x).sum().backward(); opt.step()"
    again = f"{f'def train():{chr(10)} {step}'!r}, 'train()', 'net.eval()', 'train()'"
    (found,) = findings(tmp_path / "trained", CELLS.format(again))
    assert (found.pattern, found.cure.id, found.cure.edits) == ("eval-after-epoch", "train-first", ())
    (found,) = findings(tmp_path / "always", CELLS.format(f"'net.eval()', {step!r}"))
    assert (found.pattern, found.cure.id) == ("eval-then-use", "eval-gradients")
    (found,) = findings(tmp_path / "read", CELLS.format("'net.eval(); opt = None', 'net(x).sum().backward()'"))
    assert (found.pattern, found.cure.id) == ("eval-always", "eval-gradients")
