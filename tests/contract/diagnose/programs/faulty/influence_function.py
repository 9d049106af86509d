"""How much a training example moves a prediction: two gradients with respect to the weights, both in eval mode.

kind: error
pattern: eval-always
module: rnn
class: RNN
root: Judge
through: Judge
cure: eval-gradients
"""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(3, 5)
        self.dropout = nn.Dropout(0.5)
        self.head = nn.Linear(5, 2)

    def forward(self, x):
        _, hidden = self.rnn(x)  # <- forward
        return self.head(self.dropout(hidden[-1]))


def gradient(model, x, y):
    loss = nn.functional.cross_entropy(model(x), y)  # <- call
    return torch.autograd.grad(loss, list(model.parameters()))


def influence(model, example, test):
    model = model.eval()  # <- switch
    pairs = zip(gradient(model, *example), gradient(model, *test), strict=True)
    return -sum((one * other).sum() for one, other in pairs)


def draw():
    return torch.randn(6, 1, 3, device=device), torch.zeros(1, dtype=torch.long, device=device)


if __name__ == "__main__":
    model = Judge().to(device)
    print([influence(model, draw(), draw()).item() for _ in range(3)])
