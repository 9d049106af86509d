"""An agent acts in eval mode between its updates, which never switch back.

kind: error
pattern: eval-by-helper
module: rnn
class: LSTM
root: Policy
through: Policy
cure: restore-mode
"""

import random

import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, observations, state=None):
        output, state = self.rnn(observations, state)  # <- forward
        return self.head(output), state


class Agent:
    def __init__(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.policy = Policy().to(self.device)
        self.optimizer = torch.optim.Adam(self.policy.parameters())
        self.replay, self.state = [], None

    def act(self, observation):
        self.policy.eval()  # <- switch
        with torch.no_grad():
            scores, self.state = self.policy(observation.view(1, 1, 3), self.state)
        return int(scores.argmax())

    def update(self):
        observations, values = zip(*random.choices(self.replay, k=4), strict=True)
        scores, _ = self.policy(torch.stack(observations, 1))
        loss = nn.functional.mse_loss(scores.mean((0, 2)), torch.stack(values))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def imitate(self, observations):
        self.optimizer.zero_grad()
        self.policy(observations)[0].square().mean().backward()
        self.optimizer.step()


agent = Agent()
agent.policy.train()
agent.imitate(torch.randn(6, 4, 3, device=agent.device))
for step in range(12):
    observation = torch.randn(3, device=agent.device)
    agent.act(observation)
    agent.replay.append((observation.expand(6, 3), torch.randn((), device=agent.device)))
    if step >= 8:
        agent.update()
