"""The function that validates switches to eval mode and leaves it so; it is called at the end of every epoch.

kind: error
pattern: eval-after-epoch
module: decoder
class: GRU
root: Forecaster
through: Forecaster
cure: train-first
"""

import torch
from torch import nn

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Forecaster(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(2)
        self.decoder = nn.GRU(2, 6, num_layers=2, dropout=0.1)
        self.head = nn.Linear(6, 1)

    def forward(self, series):
        series = self.norm(series.flatten(0, 1)).view_as(series)
        return self.head(self.decoder(series)[0])  # <- forward


def train_epoch(model, batches, optimizer):
    for series, target in batches:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(series), target).backward()  # <- call
        optimizer.step()


def evaluate(model, batches):
    model.eval()  # <- switch
    total = 0.0
    with torch.no_grad():
        for series, target in batches:
            total += nn.functional.l1_loss(model(series), target).item()
    return total / len(batches)


def main():
    batches = [(torch.randn(7, 4, 2, device=DEVICE), torch.randn(7, 4, 1, device=DEVICE)) for _ in range(3)]
    model = Forecaster().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best = float("inf")
    for _epoch in range(4):
        train_epoch(model, batches, optimizer)
        best = min(best, evaluate(model, batches))


if __name__ == "__main__":
    main()
