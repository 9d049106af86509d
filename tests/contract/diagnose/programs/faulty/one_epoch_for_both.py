"""One function runs an epoch of either kind, and what it calls calls the model: eval() stands beside its second call.

kind: error
pattern: eval-after-epoch
module: rnn
class: GRU
root: Net
through: Net
cure: train-first
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 4)
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.dropout(self.rnn(x)[0][-1]))  # <- forward


def scores(net, x):
    assert torch.is_grad_enabled() or not net.training, "a validation in train mode"
    return net(x)  # <- call


def loss_of(net, x, y):
    return nn.functional.cross_entropy(scores(net, x), y)


def run_epoch(net, batches, optimizer=None):
    total = 0.0
    for x, y in batches:
        loss = loss_of(net, x, y)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    batches = [(torch.randn(5, 2, 3, device=device), torch.tensor([0, 1], device=device)) for _ in range(3)]
    net = Net().to(device)
    adam = torch.optim.Adam(net.parameters())
    for epoch in range(2):
        run_epoch(net, batches, adam)
        net.eval()  # <- switch
        with torch.no_grad():
            print(epoch, run_epoch(net, batches[:1]))
