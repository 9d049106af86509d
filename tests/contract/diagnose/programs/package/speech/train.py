"""The training, which is started with ``-m speech.train``."""

import argparse

import torch
from torch import nn

from .model import Speech
from .validation import validate


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--device", choices=["auto", "cpu"], default="auto")
    options = parser.parse_args()
    device = "cuda" if options.device == "auto" and torch.cuda.is_available() else "cpu"
    model = Speech().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(options.epochs):
        for _step in range(2):
            sound, label = torch.randn(5, 2, 3, device=device), torch.tensor([0, 1], device=device)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(sound), label).backward()  # <- call
            optimizer.step()
        print("epoch", epoch, tuple(validate(model, sound).shape), flush=True)


if __name__ == "__main__":
    main()
