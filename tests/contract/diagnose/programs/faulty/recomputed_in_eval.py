"""Checkpointing runs the RNN again in the backward; the model is in eval mode by then, since it was shown first.

kind: error
pattern: eval-by-helper
module: rnn
class: GRU
root: Net
through: Net
cure: restore-mode
"""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.adapter = nn.Linear(3, 3)
        self.rnn = nn.GRU(3, 4)
        self.head = nn.Linear(4, 1)

    def hidden(self, x):
        return self.rnn(x)[0]  # <- forward

    def forward(self, x):
        return self.head(checkpoint(self.hidden, self.adapter(x), use_reentrant=True))


def show(model, x):
    model.eval()  # <- switch
    with torch.no_grad():
        print(model(x).shape)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _step in range(2):
        model.train()
        x = torch.randn(5, 2, 3, device=device)
        loss = model(x).square().mean()
        show(model, x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
