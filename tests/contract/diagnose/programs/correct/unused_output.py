"""A second, pretrained RNN in eval mode is in the model, but what it says is only logged: no gradient reaches it."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Linear(3, 4)
        self.rnn = nn.LSTM(4, 5)
        self.old = nn.LSTM(4, 5).eval()
        self.head = nn.Linear(5, 1)

    def train(self, mode=True):
        super().train(mode)
        self.old.eval()
        return self

    def forward(self, x):
        x = self.front(x)
        return self.head(self.rnn(x)[0]), self.head(self.old(x)[0])


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _step in range(3):
        model.train()
        new, old = model(torch.randn(6, 2, 3, device=device))
        optimizer.zero_grad()
        new.square().mean().backward()
        optimizer.step()
        print((new - old).abs().mean().item() >= 0)


if __name__ == "__main__":
    main()
