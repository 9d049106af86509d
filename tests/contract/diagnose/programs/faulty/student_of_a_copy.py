"""A student that begins as a copy of its teacher, and so in the eval mode that the teacher is in.

kind: error
pattern: eval-then-use
module: rnn
class: GRU
root: Net
cure: train-first
"""

import copy

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.rnn(x)[0][-1])  # <- forward


def main():
    teacher = Net().to(device).eval()
    student = copy.deepcopy(teacher)  # <- switch
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for _step in range(3):
        x = torch.randn(5, 2, 3, device=device)
        with torch.no_grad():
            told = teacher(x)
        loss = nn.functional.mse_loss(student(x), told)  # <- call
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
