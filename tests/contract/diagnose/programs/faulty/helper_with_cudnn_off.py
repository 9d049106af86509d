"""cuDNN is off for the process, so nothing is ever raised; a helper still leaves the rest of training without dropout.

kind: warning
pattern: mode-not-restored
module: rnn
class: GRU
root: Net
through: Net
cure: [restore-mode, train-first]
"""

import torch
from torch import nn

torch.backends.cudnn.enabled = False
device = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 4, num_layers=2, dropout=0.5)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.rnn(x)[0])  # <- forward


def preview(model, x):
    model.eval()  # <- switch
    with torch.no_grad():
        return model(x)[-1]


def main():
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.train()
    for step in range(6):
        x, y = torch.randn(5, 2, 3, device=device), torch.randn(5, 2, 1, device=device)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        if step == 2:
            print(preview(model, x).shape)


if __name__ == "__main__":
    main()
