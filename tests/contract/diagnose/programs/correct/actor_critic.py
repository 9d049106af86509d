"""An actor-critic rolls out and learns in training mode; in between it is tested on a policy frozen in eval mode."""

import copy

import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 6)
        self.act, self.value = nn.Linear(6, 2), nn.Linear(6, 1)

    def forward(self, observation, state=None):
        output, state = self.rnn(observation, state)
        return torch.distributions.Categorical(logits=self.act(output), validate_args=False), self.value(output), state


def roll_out(policy, steps, device):
    state, kept = None, []
    for _ in range(steps):
        distribution, value, state = policy(torch.randn(1, 1, 3, device=device), state)
        action = distribution.sample()
        kept.append((distribution.log_prob(action), value, torch.rand((), device=device)))
    return kept


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    policy = Policy().to(device).train()
    optimizer = torch.optim.Adam(policy.parameters())
    for round_ in range(3):
        rewards_to_go, loss = 0.0, 0.0
        for log_probability, value, reward in reversed(roll_out(policy, 4, device)):
            rewards_to_go = reward + 0.9 * rewards_to_go
            advantage = rewards_to_go - value
            loss = loss + (advantage.square() - log_probability * advantage.detach()).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        frozen = copy.deepcopy(policy).eval().requires_grad_(False)
        print(round_, len(roll_out(frozen, 2, device)))


if __name__ == "__main__":
    main()
