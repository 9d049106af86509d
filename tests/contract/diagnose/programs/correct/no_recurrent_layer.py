"""An attack on a network without any RNN: eval mode is no obstacle to its gradient."""

import torch
from torch import nn


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(
        nn.Conv1d(3, 4, 3, padding=1),
        nn.BatchNorm1d(4),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(4, 2),
    ).to(device)
    model.eval()
    sound = torch.randn(2, 3, 10, device=device, requires_grad=True)
    nn.functional.cross_entropy(model(sound), torch.tensor([0, 1], device=device)).backward()
    print(sound.grad.sign().shape)


if __name__ == "__main__":
    main()
