"""train() before every forward, so that it does not matter what a callback did in between."""

import torch
from torch import nn


class Trainer:
    def __init__(self, model, callback):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model, self.callback = model.to(self.device), callback
        self.optimizer = torch.optim.Adam(model.parameters())

    def step(self, x, y):
        self.model.train()
        loss = nn.functional.cross_entropy(self.model(x)[0][-1], y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def fit(self, loader, epochs):
        for _epoch in range(epochs):
            for x, y in loader:
                self.step(x.to(self.device), y.to(self.device))
                self.callback(self.model, x.to(self.device))


def show(model, x):
    model.eval()
    with torch.no_grad():
        print(model(x)[0][-1].argmax(-1).tolist())


if __name__ == "__main__":
    model = nn.Sequential(nn.Linear(3, 4), nn.GRU(4, 5))
    Trainer(model, show).fit([(torch.randn(6, 2, 3), torch.tensor([0, 1]))] * 3, epochs=2)
