"""The mode changes between forward and backward: what counts is that the forward ran in training mode."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4, batch_first=True)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Model().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.randn(2, 5, 3, device=device), torch.tensor([0, 1], device=device)
    for _step in range(3):
        model.train()
        loss = nn.functional.cross_entropy(model(x), y)
        model.eval()
        with torch.no_grad():
            print((model(x).argmax(-1) == y).sum().item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
