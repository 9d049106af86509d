"""An attack on a model in eval mode, its forward with cuDNN off: where it is turned off counts."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 6, bidirectional=True)
        self.head = nn.Linear(12, 2)

    def forward(self, sound):
        return self.head(self.rnn(sound)[0].mean(0))


def projected_gradient(model, sound, label, epsilon=0.1, rounds=3):
    changed = sound.clone()
    for _ in range(rounds):
        changed.requires_grad_()
        with torch.backends.cudnn.flags(enabled=False):
            loss = nn.functional.cross_entropy(model(changed), label)
        (gradient,) = torch.autograd.grad(loss, changed)
        step = changed.detach() + epsilon / rounds * gradient.sign()
        changed = torch.max(torch.min(step, sound + epsilon), sound - epsilon)
    return changed


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Model().to(device).eval()
    sound, label = torch.randn(7, 2, 3, device=device), torch.tensor([0, 1], device=device)
    print(projected_gradient(model, sound, label).shape)
