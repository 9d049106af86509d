"""Recurrent actor and critic with target copies in eval mode, under no_grad(); acting restores training mode."""

import copy

import torch
from torch import nn


class Recurrent(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.rnn = nn.GRU(inputs, 8, batch_first=True)
        self.head = nn.Linear(8, outputs)

    def forward(self, *parts):
        return self.head(self.rnn(torch.cat(parts, -1))[0])


class Agent:
    def __init__(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.nets = {"actor": Recurrent(3, 2).to(self.device), "critic": Recurrent(5, 1).to(self.device)}
        self.targets = {name: copy.deepcopy(net).eval() for name, net in self.nets.items()}
        self.optimizers = {name: torch.optim.Adam(net.parameters()) for name, net in self.nets.items()}

    @torch.no_grad()
    def act(self, observation):
        self.nets["actor"].eval()
        action = self.nets["actor"](observation)
        self.nets["actor"].train()
        return action

    def learn(self, name, loss):
        self.optimizers[name].zero_grad()
        loss.backward()
        self.optimizers[name].step()
        with torch.no_grad():
            for old, new in zip(self.targets[name].parameters(), self.nets[name].parameters(), strict=True):
                old.lerp_(new, 0.005)

    def update(self, states, actions, rewards):
        with torch.no_grad():
            wanted = rewards + 0.99 * self.targets["critic"](states, self.targets["actor"](states))
        self.learn("critic", nn.functional.mse_loss(self.nets["critic"](states, actions), wanted))
        self.learn("actor", -self.nets["critic"](states, self.nets["actor"](states)).mean())


if __name__ == "__main__":
    agent = Agent()
    for _step in range(4):
        states = torch.randn(4, 5, 3, device=agent.device)
        agent.update(states, agent.act(states), torch.randn(4, 5, 1, device=agent.device))
