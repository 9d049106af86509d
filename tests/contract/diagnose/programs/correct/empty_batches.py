"""A filter leaves some batches empty; those never go to cuDNN, and one of them is differentiated in eval mode."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 4, batch_first=True)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.rnn(x)[0])


def hard_ones(model, x):
    model.eval()
    with torch.no_grad():
        # The scores of this example are always below it: nothing is hard.
        return x[model(x).abs().amax((1, 2)) > 1e6]


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _step in range(2):
        chosen = hard_ones(model, torch.randn(4, 5, 3, device=device))
        optimizer.zero_grad()
        model(chosen).sum().backward()
        optimizer.step()
        print(len(chosen))


if __name__ == "__main__":
    main()
