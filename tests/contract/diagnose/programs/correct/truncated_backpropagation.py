"""A language model learns piece by piece with its state carried over; each evaluation has a state of its own."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class LanguageModel(nn.Module):
    def __init__(self, words=11):
        super().__init__()
        self.embedding = nn.Embedding(words, 4)
        self.rnn = nn.LSTM(4, 6, num_layers=2, dropout=0.3)
        self.head = nn.Linear(6, words)

    def forward(self, text, state):
        output, state = self.rnn(self.embedding(text), state)
        return self.head(output), tuple(part.detach() for part in state)


def pieces(text, length=6):
    for start in range(0, len(text) - length, length):
        yield text[start : start + length], text[start + 1 : start + length + 1]


def evaluate(model, text):
    model.eval()
    total, state = 0.0, None
    with torch.no_grad():
        for x, y in pieces(text):
            scores, state = model(x, state)
            total += nn.functional.cross_entropy(scores.flatten(0, 1), y.flatten()).item()
    return total


def train(model, text, optimizer):
    model.train()
    state = None
    for x, y in pieces(text):
        scores, state = model(x, state)
        optimizer.zero_grad()
        nn.functional.cross_entropy(scores.flatten(0, 1), y.flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()


if __name__ == "__main__":
    text = torch.randint(11, (30, 2)).to(device)
    model = LanguageModel().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for _epoch in range(2):
        train(model, text, optimizer)
        print(evaluate(model, text) >= 0)
