"""A class that is no module has a forward() of its own, which puts the network into training mode, as it may."""

import torch
from torch import nn


class Pipeline:
    def __init__(self):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.net = nn.ModuleDict({"rnn": nn.LSTM(3, 4), "head": nn.Linear(4, 1)}).to(self.device)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.series = self.output = None

    def forward(self):
        self.net.train()
        self.output = self.net["head"](self.net["rnn"](self.series)[0])

    def optimize(self, series):
        self.series = series.to(self.device)
        self.forward()
        self.optimizer.zero_grad()
        self.output.square().mean().backward()
        self.optimizer.step()

    def test(self):
        self.net.eval()
        with torch.no_grad():
            return self.net["head"](self.net["rnn"](self.series)[0]).shape


if __name__ == "__main__":
    pipeline = Pipeline()
    for _step in range(3):
        pipeline.optimize(torch.randn(5, 2, 3))
        print(pipeline.test())
