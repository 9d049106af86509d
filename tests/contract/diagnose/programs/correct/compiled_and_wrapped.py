"""A compiled model inside DataParallel, in training mode whenever it learns."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 4, batch_first=True)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        output, _ = self.rnn(x)
        return self.head(output)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.DataParallel(torch.compile(Net().to(device), backend="eager"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(2, 5, 3, device=device), torch.randn(2, 5, 1, device=device)
    for _epoch in range(2):
        model.train()
        for _step in range(2):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            print(model(x).shape)


if __name__ == "__main__":
    main()
