"""train() at the top of every epoch and eval() for the validation after it; the loader's workers are spawned."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Sines(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, number):
        series = torch.sin(torch.arange(6.0) + number)[:, None]
        return series[:-1], series[1:]


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(1, 6, batch_first=True, num_layers=2, dropout=0.2)
        self.head = nn.Linear(6, 1)

    def forward(self, series):
        return self.head(self.rnn(series)[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(Sines(), batch_size=4, num_workers=1, multiprocessing_context="spawn", persistent_workers=True)
    model = Forecaster().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(options.epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x.to(device)), y.to(device)).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            losses = [nn.functional.mse_loss(model(x.to(device)), y.to(device)).item() for x, y in loader]
        print(epoch, len(losses))


if __name__ == "__main__":
    main()
