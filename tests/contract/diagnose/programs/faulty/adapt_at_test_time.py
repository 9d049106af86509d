"""Few-shot learning: the meta-test adapts a copy of the model by gradient, with everything in eval mode.

kind: error
pattern: inner-loop-in-eval
module: rnn
class: GRU
root: Learner
through: Learner
cure: eval-gradients
"""

import torch
from torch import nn
from torch.func import functional_call

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(2, 5)
        self.head = nn.Linear(5, 1)

    def forward(self, x):
        return self.head(self.rnn(x)[0])  # <- forward


def loss_of(model, weights, task):
    x, y = task
    return nn.functional.mse_loss(functional_call(model, weights, (x,)), y)


def adapted(model, task, lr=0.1):
    weights = dict(model.named_parameters())
    gradients = torch.autograd.grad(loss_of(model, weights, task), list(weights.values()))
    return {name: weight - lr * one for (name, weight), one in zip(weights.items(), gradients, strict=True)}


def draw():
    return torch.randn(4, 3, 2, device=DEVICE), torch.randn(4, 3, 1, device=DEVICE)


def meta_test(model, tasks):
    model.eval()  # <- switch
    losses = []
    for _ in range(tasks):
        weights = adapted(model, draw())
        with torch.no_grad():
            losses.append(loss_of(model, weights, draw()).item())
    return losses


def main():
    model = Learner().to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    for _round in range(2):
        model.train()
        for _task in range(2):
            optimizer.zero_grad()
            loss_of(model, adapted(model, draw()), draw()).backward()
            optimizer.step()
        print(len(meta_test(model, 2)))


if __name__ == "__main__":
    main()
