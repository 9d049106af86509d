"""The RNN alone is put into training mode for an eval gradient, with its own dropout at zero for as long."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 6, num_layers=2, dropout=0.4)
        self.dropout = nn.Dropout(0.4)
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        return self.head(self.dropout(self.rnn(x)[0][-1]))


def attribute(model, x, label):
    model.eval()
    kept, model.rnn.dropout = model.rnn.dropout, 0.0
    model.rnn.train()
    try:
        x = x.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(model(x)[:, label].sum(), x)
    finally:
        model.rnn.dropout = kept
        model.rnn.eval()
    return (gradient * x).sum(-1)


if __name__ == "__main__":
    model = Model().to(device)
    for label in range(2):
        print(attribute(model, torch.randn(5, 3, 3, device=device), label).shape)
