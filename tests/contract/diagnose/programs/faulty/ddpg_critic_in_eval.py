"""An actor is trained through a critic that was put into eval mode, to hold it still while the actor learns.

kind: error
pattern: rnn-eval-rest-train
module: memory
class: GRU
root: Critic
through: Critic
cure: eval-gradients
"""

import copy

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2), nn.Tanh())

    def forward(self, states):
        return self.net(states)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory = nn.GRU(5, 8, batch_first=True)
        self.value = nn.Linear(8, 1)

    def forward(self, states, actions):
        output, _ = self.memory(torch.cat([states, actions], -1))  # <- forward
        return self.value(output)


def soft_update(target, source, tau=0.01):
    with torch.no_grad():
        for old, new in zip(target.parameters(), source.parameters(), strict=True):
            old.lerp_(new, tau)


actor, critic = Actor().to(DEVICE), Critic().to(DEVICE)
target_critic = copy.deepcopy(critic)
actor_optimizer = torch.optim.Adam(actor.parameters())
critic_optimizer = torch.optim.Adam(critic.parameters())
for _step in range(3):
    states, rewards = torch.randn(4, 6, 3, device=DEVICE), torch.randn(4, 6, 1, device=DEVICE)
    critic.train()
    critic_optimizer.zero_grad()
    with torch.no_grad():
        wanted = rewards + 0.99 * target_critic(states, actor(states))
    nn.functional.mse_loss(critic(states, actor(states).detach()), wanted).backward()
    critic_optimizer.step()

    critic.eval().requires_grad_(False)  # <- switch
    actor_optimizer.zero_grad()
    (-critic(states, actor(states)).mean()).backward()
    actor_optimizer.step()
    critic.requires_grad_(True)
    soft_update(target_critic, critic)
