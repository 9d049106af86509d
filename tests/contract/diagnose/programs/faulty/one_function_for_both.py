"""One function for an epoch of training and of validation, which sets the mode for the latter alone.

kind: error
pattern: eval-after-epoch
module: rnn
class: GRU
root: Net
through: Net
cure: train-first
"""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 4, num_layers=2, dropout=0.2)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.rnn(x)[0][-1])  # <- forward


def run_epoch(model, loader, optimizer=None):
    if optimizer is None:
        model.eval()  # <- switch
    total = 0.0
    for x, y in loader:
        with torch.set_grad_enabled(optimizer is not None):
            loss = nn.functional.cross_entropy(model(x), y)  # <- call
        if optimizer is None:
            assert not model.training
        else:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total


def main():
    model = Net().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    batches = [(torch.randn(5, 2, 3, device=device), torch.tensor([0, 1], device=device)) for _ in range(3)]
    for epoch in range(3):
        learnt = run_epoch(model, batches, optimizer)
        print(epoch, learnt >= 0, run_epoch(model, batches) >= 0)


if __name__ == "__main__":
    main()
