"""A helper sets the training flags one by one, and forgets to set them back.

kind: error
pattern: eval-by-helper
module: blocks.1.rnn
class: GRU
root: Tower
through: ""
cure: [restore-mode, train-first]
"""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.rnn = nn.GRU(4, 4)

    def forward(self, x):
        return x + self.rnn(self.norm(x))[0]  # <- forward


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())

    def forward(self, x):
        return self.blocks(x)


def predict(model, x):
    for module in model.modules():
        module.training = False  # <- switch
    with torch.no_grad():
        return model(x)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Tower().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(5):
        x = torch.randn(3, 2, 4, device=device)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        if step == 2:
            predict(model, x)


if __name__ == "__main__":
    main()
