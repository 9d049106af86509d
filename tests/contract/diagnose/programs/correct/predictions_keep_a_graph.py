"""Predictions in eval mode without no_grad(): a graph is recorded, and nobody goes back through it."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 4, bidirectional=True)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.rnn(x)[0])


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Model().to(device)
    optimizer = torch.optim.RMSprop(model.parameters())
    x, y = torch.randn(5, 2, 3, device=device), torch.randn(5, 2, 1, device=device)
    for epoch in range(2):
        model.train()
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        model.eval()
        loss = nn.functional.mse_loss(model(x), y)
        print(epoch, loss.item(), loss.requires_grad)


if __name__ == "__main__":
    main()
