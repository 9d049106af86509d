"""Fine-tuning with batch norm in eval mode and everything else, the RNN's dropout included, in training mode."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.rnn = nn.GRU(3, 5, num_layers=2, dropout=0.4)
        self.head = nn.Linear(5, 2)

    def forward(self, x):
        x = self.norm(x.flatten(0, 1)).view_as(x)
        return self.head(self.rnn(x)[0][-1])


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Model().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for _step in range(3):
        model.train()
        model.norm.eval()
        x, y = torch.randn(6, 2, 3, device=device), torch.tensor([0, 1], device=device)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


if __name__ == "__main__":
    main()
