"""Policy gradients of actions that were chosen in eval mode; train() comes after the roll-out, before the update.

kind: error
pattern: train-before-backward
module: rnn
class: LSTM
root: Policy
through: Policy
cure: train-first
"""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, observation, state=None):
        output, state = self.rnn(observation, state)  # <- forward
        return self.head(output).log_softmax(-1), state


def roll_out(policy, steps):
    policy.eval()  # <- switch
    state, chosen = None, []
    for _ in range(steps):
        scores, state = policy(torch.randn(1, 1, 3, device=device), state)  # <- call
        chosen.append(scores.max())
    return torch.stack(chosen)


def main():
    policy = Policy().to(device)
    optimizer = torch.optim.Adam(policy.parameters())
    for _episode in range(3):
        chosen = roll_out(policy, 4)
        policy.train()
        loss = -(chosen * torch.rand(4, device=device)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
