"""Elastic weight consolidation: after a task the importance of each weight is taken from gradients in eval mode.

kind: error
pattern: inner-loop-in-eval
module: rnn
class: RNN
root: Net
through: Net
cure: eval-gradients
"""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(4, 6, nonlinearity="relu", batch_first=True)
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        return self.head(self.rnn(x)[1][-1])  # <- forward


def fisher(model, batches):
    model.eval()  # <- switch
    importance = {name: torch.zeros_like(weight) for name, weight in model.named_parameters()}
    for x, _ in batches:
        model.zero_grad()
        scores = nn.functional.log_softmax(model(x), -1)
        nn.functional.nll_loss(scores, scores.argmax(-1)).backward()
        for name, weight in model.named_parameters():
            importance[name] += weight.grad.square() / len(batches)
    return importance


def learn(model, batches, optimizer):
    model.train()
    for x, y in batches:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def main():
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _task in range(2):
        batches = [(torch.randn(3, 5, 4, device=device), torch.ones(3, dtype=torch.long, device=device))] * 2
        learn(model, batches, optimizer)
        print(sorted(fisher(model, batches)))


if __name__ == "__main__":
    main()
