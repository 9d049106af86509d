"""The best state is kept and put back at the end; the test after it takes no gradient."""

import copy

import torch
from torch import nn


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(2, 5, batch_first=True)
        self.head = nn.Linear(5, 1)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.waited, self.state = patience, float("inf"), 0, None

    def stops(self, loss, model):
        if loss < self.best:
            self.best, self.waited, self.state = loss, 0, copy.deepcopy(model.state_dict())
        else:
            self.waited += 1
        return self.waited >= self.patience


def validated(model, x, y):
    model.eval()
    with torch.no_grad():
        return nn.functional.mse_loss(model(x), y).item()


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model, stopping = Forecaster().to(device), EarlyStopping(patience=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    x, y = torch.randn(4, 6, 2, device=device), torch.randn(4, 1, device=device)
    for _epoch in range(5):
        model.train()
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        if stopping.stops(validated(model, x, y), model):
            break
    model.load_state_dict(stopping.state)
    print(validated(model, x, y) >= 0)


if __name__ == "__main__":
    main()
