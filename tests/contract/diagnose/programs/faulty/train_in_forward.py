"""forward() calls train() itself: never the error, and never eval mode, so that predictions are random.

kind: warning
pattern: train-in-forward
module: rnn
class: LSTM
root: Net
through: LSTM
cure: remove-train
"""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4, num_layers=2, dropout=0.5)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        self.rnn.train()  # <- switch
        output, _ = self.rnn(x)
        return self.head(output[-1])


def main():
    model = Net().to(device).eval()
    x = torch.randn(5, 2, 3, device=device, requires_grad=True)
    model(x)[:, 0].sum().backward()
    with torch.no_grad():
        print((model(x) == model(x)).all().item())


if __name__ == "__main__":
    main()
