"""A subclass of nn.LSTM with dropped recurrent weights; validation in the middle of an epoch leaves it in eval mode.

kind: error
pattern: eval-by-helper
module: layers.1
class: LockedDropoutLSTM
root: Stack
through: Stack
cure: restore-mode
"""

import torch
from torch import nn


class LockedDropoutLSTM(nn.LSTM):
    def forward(self, x, state=None):
        if self.training:
            mask = torch.ones_like(x[:1]).bernoulli(0.8) / 0.8
            x = x * mask
        return super().forward(x, state)  # <- forward


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 4), LockedDropoutLSTM(4, 4), nn.Linear(4, 2)])

    def forward(self, x):
        first, rnn, last = self.layers
        return last(rnn(first(x))[0])


def validate(model, x):
    model.train(False)  # <- switch
    with torch.no_grad():
        return model(x).mean().item()


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Stack().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    held_out = torch.randn(5, 2, 3, device=device)
    for _epoch in range(2):
        model.train()
        for step in range(1, 7):
            x = torch.randn(5, 4, 3, device=device)
            loss = model(x).square().mean()  # <- call
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if step % 3 == 0:
                print(step, validate(model, held_out))


if __name__ == "__main__":
    main()
