"""The fast gradient sign method against a trained model, which its loader hands out in eval mode.

kind: error
pattern: eval-always
module: features.rnn
class: LSTM
root: Speech
through: Speech
cure: eval-gradients
"""

import argparse

import torch
from torch import nn


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(5, 6, bidirectional=True)

    def forward(self, sound):
        return self.rnn(sound)[0].mean(0)  # <- forward


class Speech(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = Features()
        self.norm = nn.BatchNorm1d(12)
        self.head = nn.Linear(12, 4)

    def forward(self, sound):
        return self.head(self.norm(self.features(sound)))


def load_model(device):
    model = Speech().to(device)
    model.eval()  # <- switch
    return model


def attack(model, sound, label, epsilon):
    sound = sound.clone().requires_grad_()
    loss = nn.functional.cross_entropy(model(sound), label)  # <- call
    loss.backward()
    return (sound + epsilon * sound.grad.sign()).detach()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epsilon", type=float, default=0.1)
    epsilon = parser.parse_args().epsilon
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = load_model(device)
    sound, label = torch.randn(9, 3, 5, device=device), torch.tensor([0, 1, 2], device=device)
    changed = attack(model, sound, label, epsilon)
    with torch.no_grad():
        print(model(changed).argmax(-1).shape)


if __name__ == "__main__":
    main()
