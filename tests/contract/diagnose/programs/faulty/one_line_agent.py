"""An agent, no module itself, that is written in single lines; acting leaves its policy in eval mode.

kind: error
pattern: eval-by-helper
module: rnn
class: LSTM
root: Policy
through: Policy
cure: train-first
"""

# ruff: noqa: E701, E702
# fmt: off

import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4, num_layers=2, dropout=0.2)

    def forward(self, x): assert torch.is_grad_enabled() or not self.training; return self.rnn(x)[0]  # <- forward


class Agent:
    def __init__(self, device):
        self.policy = Policy().to(device)
        self.adam = torch.optim.Adam(self.policy.parameters())

    def value(self, x): return self.policy(x).sum()  # <- call

    def update(self, x): self.adam.zero_grad(); self.value(x).backward(); self.adam.step()

    @torch.no_grad()
    def act(self, x): self.policy.eval(); return self.value(x)  # <- switch


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    agent = Agent(device)
    x = torch.randn(5, 2, 3, device=device)
    for _ in range(3): agent.update(x); agent.act(x)
