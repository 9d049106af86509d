"""After each epoch a copy is exported as TorchScript, in eval mode; the model itself goes on."""

import copy
import io

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4, batch_first=True)
        self.head = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output, _ = self.rnn(x)
        return self.head(output[:, -1])


def exported(model):
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(copy.deepcopy(model).eval()), buffer)
    return len(buffer.getvalue()) > 0


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Model().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.randn(2, 5, 3, device=device), torch.tensor([0, 1], device=device)
    for _epoch in range(2):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        print(exported(model))


if __name__ == "__main__":
    main()
