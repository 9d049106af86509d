"""First-order meta-learning: every gradient, the meta-test's too, is taken of forwards in training mode."""

import copy

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(2, 5)
        self.head = nn.Linear(5, 1)

    def forward(self, x):
        return self.head(self.rnn(x)[0])


def draw():
    return torch.randn(4, 3, 2, device=DEVICE), torch.randn(4, 3, 1, device=DEVICE)


def adapted(model, rounds=2):
    pupil = copy.deepcopy(model).train()
    optimizer = torch.optim.SGD(pupil.parameters(), lr=0.1)
    x, y = draw()
    for _ in range(rounds):
        optimizer.zero_grad()
        nn.functional.mse_loss(pupil(x), y).backward()
        optimizer.step()
    return pupil


def main():
    model = Learner().to(DEVICE)
    for _round in range(2):
        pupil = adapted(model)
        with torch.no_grad():
            for slow, fast in zip(model.parameters(), pupil.parameters(), strict=True):
                slow.lerp_(fast, 0.1)
        model.eval()
        pupil = adapted(model).eval()
        x, y = draw()
        with torch.no_grad():
            print(nn.functional.mse_loss(pupil(x), y).isfinite().item())


if __name__ == "__main__":
    main()
