"""Learning rates are tried out on a copy before training, which begins with a validation in eval mode."""

import copy

import torch
from torch import nn


class Model(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(3, 4), nn.GRU(4, 5, num_layers=2, dropout=0.1))

    def forward(self, x):
        return super().forward(x)[0].mean(-1)


def loss_after(model, x, y, lr, steps):
    model = copy.deepcopy(model).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


def validate(model, x, y):
    model.eval()
    with torch.no_grad():
        return nn.functional.mse_loss(model(x), y).item()


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Model().to(device)
    x, y = torch.randn(5, 2, 3, device=device), torch.randn(5, 2, device=device)
    print(validate(model, x, y) >= 0)
    best = min((0.001, 0.01, 0.1), key=lambda lr: loss_after(model, x, y, lr, steps=2))
    optimizer = torch.optim.SGD(model.parameters(), lr=best)
    for _epoch in range(2):
        model.train()
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        print(validate(model, x, y) >= 0)


if __name__ == "__main__":
    main()
