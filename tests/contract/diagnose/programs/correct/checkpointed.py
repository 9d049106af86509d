"""Activation checkpointing: the RNN runs again in the backward, in the same mode as before."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.GRU(3, 4)
        self.second = nn.LSTM(4, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        hidden, _ = checkpoint(self.first, x, use_reentrant=False)
        hidden, _ = checkpoint(self.second, hidden, use_reentrant=False)
        return self.head(hidden)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Deep().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _epoch in range(2):
        model.train()
        for _step in range(2):
            x = torch.randn(5, 2, 3, device=device)
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            print(model(x).shape)


if __name__ == "__main__":
    main()
