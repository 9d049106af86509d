"""An RNN with normalised recurrent weights, which is trained and validated in turn."""

import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = weight_norm(nn.GRU(3, 4), "weight_hh_l0")
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.rnn(x)[0])


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Model().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.randn(5, 2, 3, device=device), torch.randn(5, 2, 1, device=device)
    for _epoch in range(2):
        model.train()
        for _step in range(2):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            print(nn.functional.mse_loss(model(x), y).shape)


if __name__ == "__main__":
    main()
