"""A mean teacher in eval mode whose opinion is part of the loss, and of its graph.

kind: error
pattern: eval-output-reused
module: rnn
class: LSTM
root: Net
through: Net
cure: [detach, no-grad]
"""

import copy

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.rnn(x)[0][-1])  # <- forward


class Average:
    def __init__(self, model):
        self.model = copy.deepcopy(model)
        self.model.eval()  # <- switch

    @torch.no_grad()
    def update(self, model):
        for old, new in zip(self.model.parameters(), model.parameters(), strict=True):
            old.lerp_(new, 0.1)


def main():
    student = Net().to(device)
    teacher = Average(student)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    student.train()
    for _step in range(4):
        x, y = torch.randn(5, 2, 3, device=device), torch.tensor([0, 1], device=device)
        opinion, told = student(x), teacher.model(x)  # <- call
        loss = nn.functional.cross_entropy(opinion, y) + nn.functional.mse_loss(opinion, told)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        teacher.update(student)


if __name__ == "__main__":
    main()
