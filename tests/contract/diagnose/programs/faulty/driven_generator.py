"""Training is a generator that yields after each epoch's half; who drives it switches to eval mode itself.

kind: error
pattern: [eval-by-helper, eval-after-epoch]
module: rnn
class: GRU
root: Counter
through: Counter
cure: train-first
"""

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(2, 5)
        self.head = nn.Linear(5, 1)

    def forward(self, x):
        return self.head(self.rnn(x)[0][-1])  # <- forward


def train(model, rounds):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()
    while rounds:
        rounds -= 1
        optimizer.zero_grad()
        model(torch.randn(6, 3, 2, device=device)).square().mean().backward()  # <- call
        optimizer.step()
        yield rounds


model = Counter().to(device)
training = train(model, 4)
held_out = torch.randn(6, 3, 2, device=device)
for left in training:
    if left % 2 == 0:
        model.eval()  # <- switch
        with torch.no_grad():
            print(left, model(held_out).mean().item())
