"""Outputs of an eval forward are kept as a memory and spliced into the training loss later, still in the graph.

kind: error
pattern: eval-output-reused
module: rnn
class: GRU
root: Reader
through: Reader
cure: [no-grad, detach]
"""

import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 5)
        self.head = nn.Linear(10, 2)

    def encode(self, x):
        return self.rnn(x)[0][-1]  # <- forward

    def forward(self, x, memory):
        return self.head(torch.cat([self.encode(x), memory], -1))


def remember(model, x):
    model.eval()  # <- switch
    memory = model.encode(x)
    model.train()
    return memory


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Reader().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    previous = torch.randn(6, 4, 3, device=device)
    for _step in range(3):
        x, y = torch.randn(6, 4, 3, device=device), torch.randint(2, (4,)).to(device)
        memory = remember(model, previous)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x, memory), y).backward()
        optimizer.step()
        previous = x


if __name__ == "__main__":
    main()
