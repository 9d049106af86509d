"""A frozen encoder in eval mode at the very front: no gradient has to pass through it, so it leaves no graph."""

import torch
from torch import nn


class Probe(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder.requires_grad_(False)
        self.head = nn.Linear(6, 2)

    def train(self, mode=True):
        super().train(mode)
        self.encoder.eval()
        return self

    def forward(self, x):
        return self.head(self.encoder(x)[0][-1])


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Probe(nn.GRU(3, 6, num_layers=2, dropout=0.5)).to(device)
    optimizer = torch.optim.Adam(model.head.parameters())
    for _epoch in range(2):
        model.train()
        for _step in range(2):
            x, y = torch.randn(6, 4, 3, device=device), torch.randint(2, (4,)).to(device)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            print(model(x).argmax(-1).shape)


if __name__ == "__main__":
    main()
