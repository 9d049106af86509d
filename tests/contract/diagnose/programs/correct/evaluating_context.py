"""A context manager puts each module back into the mode that it had, a frozen part included."""

from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def evaluating(model):
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.rnn = nn.LSTM(3, 5, bidirectional=True)
        self.head = nn.Linear(10, 1)

    def forward(self, x):
        x = self.norm(x.flatten(0, 1)).view_as(x)
        return self.head(self.rnn(x)[0])


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Model().to(device)
    model.norm.eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        x = torch.randn(5, 4, 3, device=device)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        if step % 2:
            with evaluating(model):
                print(step, model(x).shape)
    assert not model.norm.training
    assert model.rnn.training


if __name__ == "__main__":
    main()
