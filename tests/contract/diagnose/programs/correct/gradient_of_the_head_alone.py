"""In eval mode the head is adapted by a gradient of its own weights alone: it never comes as far as the RNN."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 5)
        self.head = nn.Linear(5, 2)

    def forward(self, x):
        return self.head(self.rnn(x)[0][-1])


def adapt(model, x, y, lr=0.1):
    model.eval()
    weights = list(model.head.parameters())
    loss = nn.functional.cross_entropy(model(x), y)
    for weight, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
        weight.data -= lr * gradient


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Model().to(device)
    x, y = torch.randn(6, 2, 3, device=device), torch.tensor([0, 1], device=device)
    for _round in range(3):
        adapt(model, x, y)
    with torch.no_grad():
        print(model(x).argmax(-1).shape)


if __name__ == "__main__":
    main()
