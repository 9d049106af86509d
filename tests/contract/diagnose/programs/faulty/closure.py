"""An optimizer that calls a closure for the loss, perhaps more than once; the epoch ends with a prediction.

kind: error
pattern: eval-after-epoch
module: rnn
class: GRU
root: Curve
through: Curve
cure: train-first
"""

import torch
from torch import nn


class Curve(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(1, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.rnn(x)[0])  # <- forward


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Curve().to(device)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=2)
    curve = torch.sin(torch.arange(8.0, device=device))[:, None, None]
    model.train()
    for epoch in range(3):

        def closure():
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(curve[:-1]), curve[1:])  # <- call
            loss.backward()
            return loss

        optimizer.step(closure)
        model.eval()  # <- switch
        with torch.no_grad():
            print(epoch, model(curve)[-1].shape)
        assert not model.training


if __name__ == "__main__":
    main()
