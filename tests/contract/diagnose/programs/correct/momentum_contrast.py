"""Contrastive learning with a momentum encoder: the copy stays in eval mode and runs under no_grad()."""

import copy

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 6, bidirectional=True)
        self.project = nn.Linear(12, 4)

    def forward(self, series):
        return nn.functional.normalize(self.project(self.rnn(series)[0].mean(0)), dim=-1)


@torch.no_grad()
def follow(slow, fast, momentum=0.99):
    for old, new in zip(slow.parameters(), fast.parameters(), strict=True):
        old.mul_(momentum).add_(new, alpha=1 - momentum)


def main():
    query_encoder = Encoder().to(device)
    key_encoder = copy.deepcopy(query_encoder).eval()
    optimizer = torch.optim.SGD(query_encoder.parameters(), lr=0.1)
    for _step in range(3):
        series = torch.randn(6, 4, 3, device=device)
        queries = query_encoder(series + 0.1 * torch.randn_like(series))
        with torch.no_grad():
            keys = key_encoder(series)
        loss = nn.functional.cross_entropy(queries @ keys.T / 0.1, torch.arange(4, device=device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        follow(key_encoder, query_encoder)


if __name__ == "__main__":
    main()
