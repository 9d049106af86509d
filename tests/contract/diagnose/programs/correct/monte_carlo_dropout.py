"""Uncertainty from dropout: the RNN alone is put into training mode to make predictions random, and learns nothing."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.rnn = nn.LSTM(3, 5, num_layers=2, dropout=0.5)
        self.head = nn.Linear(5, 1)

    def forward(self, x):
        x = self.norm(x.flatten(0, 1)).view_as(x)
        return self.head(self.rnn(x)[0][-1])


def uncertainty(model, x, samples=4):
    model.eval()
    for module in model.modules():
        if isinstance(module, nn.Dropout | nn.RNNBase):
            module.train()
    with torch.no_grad():
        drawn = torch.stack([model(x) for _ in range(samples)])
    return drawn.mean(0), drawn.std(0)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _epoch in range(2):
        model.train()
        x = torch.randn(6, 4, 3, device=device)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        mean, deviation = uncertainty(model, x)
        print(mean.shape, deviation.shape)


if __name__ == "__main__":
    main()
