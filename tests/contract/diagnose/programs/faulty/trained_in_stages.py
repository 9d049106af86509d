"""A training that is called from a line of its own for each stage; nobody switches back after a validation between.

kind: error
pattern: eval-after-epoch
module: rnn
class: LSTM
root: Tagger
through: Tagger
cure: train-first
"""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 6, num_layers=2, dropout=0.3, batch_first=True)
        self.head = nn.Linear(6, 3)

    def forward(self, words):
        return self.head(self.rnn(words)[0])  # <- forward


def batches():
    for _ in range(2):
        yield torch.randn(2, 5, 4, device=device), torch.randint(3, (2, 5), device=device)


def fit(model, optimizer):
    for words, tags in batches():
        optimizer.zero_grad()
        scores = model(words)  # <- call
        nn.functional.cross_entropy(scores.flatten(0, 1), tags.flatten()).backward()
        optimizer.step()


def validate(model):
    model.eval()  # <- switch
    with torch.no_grad():
        return sum((model(words).argmax(-1) == tags).sum() for words, tags in batches())


def main():
    model = Tagger().to(device)
    fit(model, torch.optim.Adam(model.parameters()))
    validate(model)
    fit(model, torch.optim.SGD(model.parameters(), lr=0.01))


if __name__ == "__main__":
    main()
