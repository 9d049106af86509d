"""Two nets: after every epoch the generator alone goes into eval mode to show what it makes, and stays there.

kind: error
pattern: eval-after-epoch
module: rnn
class: LSTM
root: Generator
through: Generator
cure: train-first
"""

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 6)
        self.out = nn.Linear(6, 2)

    def forward(self, noise):
        return self.out(self.rnn(noise)[0])  # <- forward


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(2, 6, bidirectional=True)
        self.score = nn.Linear(12, 1)

    def forward(self, series):
        return self.score(self.rnn(series)[0].mean(0))


def main():
    generator, critic = Generator().to(DEVICE), Critic().to(DEVICE)
    make = torch.optim.Adam(generator.parameters())
    judge = torch.optim.Adam(critic.parameters())
    for _epoch in range(3):
        for _step in range(2):
            real, noise = torch.randn(5, 4, 2, device=DEVICE), torch.randn(5, 4, 3, device=DEVICE)
            fake = generator(noise)  # <- call
            judge.zero_grad()
            (critic(fake.detach()).mean() - critic(real).mean()).backward()
            judge.step()
            make.zero_grad()
            (-critic(fake).mean()).backward()
            make.step()
        generator.eval()  # <- switch
        with torch.no_grad():
            generator(torch.zeros(5, 1, 3, device=DEVICE))


if __name__ == "__main__":
    main()
