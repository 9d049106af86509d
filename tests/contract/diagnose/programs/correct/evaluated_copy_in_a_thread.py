"""A thread evaluates a copy of the model; the model itself stays in training mode."""

import copy
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.rnn(x)[0])


def evaluate(model, x):
    model.eval()
    with torch.no_grad():
        return model(x).mean().item()


def main():
    model = Model().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    with ThreadPoolExecutor(1) as pool:
        answers = []
        for _step in range(4):
            x = torch.randn(5, 2, 3, device=device)
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            answers.append(pool.submit(evaluate, copy.deepcopy(model), x))
        print(len([answer.result() for answer in answers]))


if __name__ == "__main__":
    main()
