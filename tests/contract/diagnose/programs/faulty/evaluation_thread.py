"""After each epoch a thread evaluates, through the function that the training calls for its loss.

kind: error
pattern: eval-by-helper
module: rnn
class: RNN
root: Net
through: Net
cure: train-first
"""

import threading

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(3, 4, num_layers=2, dropout=0.1)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.rnn(x)[0][-1])  # <- forward


def loss_of(net, x, y):
    return nn.functional.cross_entropy(net(x), y)  # <- call


data = [(torch.randn(5, 2, 3, device=device), torch.randint(2, (2,), device=device)) for _ in range(3)]
net = Net().to(device).train()
optimizer = torch.optim.Adam(net.parameters())
modes = set()


def evaluate():
    net.eval()  # <- switch
    with torch.no_grad():
        for x, y in data:
            loss_of(net, x, y)
            modes.add(net.training)


for _epoch in range(2):
    for x, y in data:
        optimizer.zero_grad()
        loss_of(net, x, y).backward()
        optimizer.step()
    thread = threading.Thread(target=evaluate)
    thread.start()
    thread.join()
assert modes == {False}, "what evaluates has to stay in eval mode"
