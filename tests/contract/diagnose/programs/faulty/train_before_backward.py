"""What the message seems to ask for: train() just before backward(). The mode that counts is the forward's.

kind: error
pattern: train-before-backward
module: rnn
class: GRU
root: Regressor
through: Regressor
cure: train-first
"""

import torch
from torch import nn


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(2, 6, batch_first=True)
        self.head = nn.Linear(6, 1)

    def forward(self, series):
        output, _ = self.rnn(series)  # <- forward
        return self.head(output[:, -1])


class Experiment:
    def __init__(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = Regressor().to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def validate(self, batches):
        self.model.eval()  # <- switch
        with torch.no_grad():
            return sum(nn.functional.l1_loss(self.model(x), y).item() for x, y in batches)

    def step(self, x, y):
        loss = nn.functional.mse_loss(self.model(x), y)  # <- call
        self.optimizer.zero_grad()
        self.model.train()
        loss.backward()
        self.optimizer.step()

    def run(self, epochs):
        batches = [(torch.randn(3, 5, 2).to(self.device), torch.randn(3, 1).to(self.device)) for _ in range(2)]
        print("before training:", self.validate(batches))
        for _epoch in range(epochs):
            for x, y in batches:
                self.step(x, y)
            print(self.validate(batches))


if __name__ == "__main__":
    Experiment().run(epochs=2)
