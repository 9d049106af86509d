"""Trained on the CPU by choice: no error there, but every epoch after the first runs without dropout, in eval mode.

kind: would-raise
pattern: eval-after-epoch
module: rnn
class: LSTM
root: Net
through: Net
cure: train-first
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4, num_layers=2, dropout=0.3)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.rnn(x)[0])  # <- forward


def main():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [(torch.randn(5, 2, 3), torch.randn(5, 2, 1)) for _ in range(3)]
    for _epoch in range(3):
        for x, y in batches:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        model.eval()  # <- switch
        with torch.no_grad():
            print(sum(nn.functional.mse_loss(model(x), y).item() for x, y in batches))


if __name__ == "__main__":
    main()
