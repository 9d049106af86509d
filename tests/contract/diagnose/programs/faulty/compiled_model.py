"""A compiled model: PyTorch leaves its RNN to cuDNN, and the validation after the epoch leaves it in eval mode.

kind: error
pattern: eval-after-epoch
module: rnn
class: GRU
root: Net
through: OptimizedModule
cure: train-first
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        output, _ = self.rnn(x)  # <- forward
        return self.head(output)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = torch.compile(Net().to(device), backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(5, 2, 3, device=device), torch.randn(5, 2, 1, device=device)
    for _epoch in range(2):
        for _step in range(2):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()  # <- call
            optimizer.step()
        model.eval()  # <- switch
        with torch.no_grad():
            print(nn.functional.mse_loss(model(x), y).item())


if __name__ == "__main__":
    main()
