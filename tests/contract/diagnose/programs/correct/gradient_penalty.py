"""A critic with a gradient penalty: cuDNN has no second derivative, so it is off for that forward, in training mode."""

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(2, 5)
        self.head = nn.Linear(5, 1)

    def forward(self, series):
        return self.head(self.rnn(series)[0].mean(0))


def penalty(critic, real, fake):
    mixed = torch.lerp(real, fake, torch.rand(1, real.shape[1], 1, device=DEVICE)).requires_grad_()
    with torch.backends.cudnn.flags(enabled=False):
        scores = critic(mixed)
    (gradient,) = torch.autograd.grad(scores.sum(), mixed, create_graph=True)
    return (gradient.flatten(1).norm(dim=1) - 1).square().mean()


def main():
    critic = Critic().to(DEVICE)
    optimizer = torch.optim.Adam(critic.parameters())
    for _step in range(3):
        real, fake = torch.randn(6, 4, 2, device=DEVICE), torch.randn(6, 4, 2, device=DEVICE)
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(critic, real, fake)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
