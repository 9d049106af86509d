"""A closure named as an optimizer's method trains; another, beside it, evaluates through the same loss.

kind: error
pattern: eval-after-epoch
module: rnn
class: LSTM
root: Net
through: Net
cure: train-first
"""

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4, bidirectional=True)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.rnn(x)[0][-1])  # <- forward


def loss_of(net, batch):
    return nn.functional.cross_entropy(net(batch[0]), batch[1])  # <- call


def build(net):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(batch):
        optimizer.zero_grad()
        loss_of(net, batch).backward()
        optimizer.step()

    def evaluate(batches):
        net.eval()  # <- switch
        losses = [loss_of(net, batch).detach() for batch in batches]
        assert not net.training, "what evaluates has to stay in eval mode"
        return losses

    return step, evaluate


data = [(torch.randn(5, 2, 3, device=device), torch.randint(2, (2,), device=device)) for _ in range(3)]
step, evaluate = build(Net().to(device).train())
for _epoch in range(2):
    for batch in data:
        step(batch)
    evaluate(data)
