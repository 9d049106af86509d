"""The importance of weights is taken from gradients of a copy, which no optimizer knows; the model goes on learning.

kind: error
pattern: [eval-always, inner-loop-in-eval]
module: rnn
class: GRU
root: Net
cure: eval-gradients
"""

import copy

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 6)
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        return self.head(self.rnn(x)[0][-1])  # <- forward


def importance(model, batches):
    frozen = copy.deepcopy(model).eval()  # <- switch
    for x, y in batches:
        nn.functional.cross_entropy(frozen(x), y).backward()  # <- call
    return [weight.grad.square() for weight in frozen.parameters()]


def main():
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = [(torch.randn(5, 3, 4, device=device), torch.ones(3, dtype=torch.long, device=device))] * 2
    for _task in range(2):
        model.train()
        for x, y in batches:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        print(len(importance(model, batches)))


if __name__ == "__main__":
    main()
