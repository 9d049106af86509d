"""LSTMCell and GRUCell never go to cuDNN: a decoder made of them may be differentiated in any mode."""

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.LSTMCell(3, 4)
        self.second = nn.GRUCell(4, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        one, two, scores = None, None, []
        for piece in x:
            one = self.first(piece, one)
            two = self.second(one[0], two)
            scores.append(self.head(two))
        return torch.stack(scores)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Decoder().to(device).eval()
    x = torch.randn(4, 2, 3, device=device, requires_grad=True)
    model(x)[-1, :, 0].sum().backward()
    print(x.grad.shape)


if __name__ == "__main__":
    main()
