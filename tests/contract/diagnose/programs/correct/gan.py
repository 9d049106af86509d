"""Two nets, both back in training mode at the top of the epoch after the generator was sampled in eval mode."""

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.rnn = nn.LSTM(inputs, 6)
        self.out = nn.Linear(6, outputs)

    def forward(self, x):
        return self.out(self.rnn(x)[0])


def main():
    generator, critic = Net(3, 2).to(DEVICE), Net(2, 1).to(DEVICE)
    make = torch.optim.Adam(generator.parameters())
    judge = torch.optim.Adam(critic.parameters())
    for _epoch in range(2):
        generator.train()
        critic.train()
        for _step in range(2):
            real, noise = torch.randn(5, 4, 2, device=DEVICE), torch.randn(5, 4, 3, device=DEVICE)
            fake = generator(noise)
            judge.zero_grad()
            (critic(fake.detach()).mean() - critic(real).mean()).backward()
            judge.step()
            make.zero_grad()
            (-critic(fake).mean()).backward()
            make.step()
        generator.eval()
        with torch.inference_mode():
            generator(torch.zeros(5, 1, 3, device=DEVICE))


if __name__ == "__main__":
    main()
