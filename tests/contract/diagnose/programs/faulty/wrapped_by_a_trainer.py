"""A trainer's wrapper is switched, not the model: its check before training calls eval(), and fit() never train().

kind: error
pattern: [eval-by-helper, eval-after-epoch]
module: module.rnn
class: LSTM
root: Prepared
through: Prepared
cure: [train-first, restore-mode]
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4, batch_first=True)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])  # <- forward


class Prepared(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *inputs):
        return self.module(*inputs)


class Trainer:
    def __init__(self, model):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model = Prepared(model.to(self.device))
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def eval(self):
        self.model.eval()  # <- switch

    def sanity_check(self, loader):
        self.eval()
        with torch.no_grad():
            for x, _ in loader[:1]:
                self.model(x.to(self.device))

    def fit(self, loader, epochs):
        self.sanity_check(loader)
        for _epoch in range(epochs):
            for x, y in loader:
                loss = nn.functional.cross_entropy(self.model(x.to(self.device)), y.to(self.device))  # <- call
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()


if __name__ == "__main__":
    Trainer(Model()).fit([(torch.randn(2, 5, 3), torch.tensor([0, 1])) for _ in range(2)], epochs=2)
