"""A tagger is validated after every epoch, and nothing puts it back into training mode.

kind: error
pattern: eval-after-epoch
module: rnn
class: LSTM
root: Tagger
through: Tagger
cure: train-first
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Tagger(nn.Module):
    def __init__(self, words: int, tags: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, 8)
        self.rnn = nn.LSTM(8, 8, batch_first=True)
        self.head = nn.Linear(8, tags)

    def forward(self, sentence):
        output, _ = self.rnn(self.embedding(sentence))  # <- forward
        return self.head(output)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data = TensorDataset(torch.randint(20, (8, 5)), torch.randint(3, (8, 5)))
    loader = DataLoader(data, batch_size=4, num_workers=options.workers)
    model = Tagger(20, 3).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    criterion = nn.CrossEntropyLoss()
    model.train()
    for _ in range(options.epochs):
        for sentences, tags in loader:
            optimizer.zero_grad()
            loss = criterion(model(sentences.to(device)).flatten(0, 1), tags.to(device).flatten())  # <- call
            loss.backward()
            optimizer.step()
        model.eval()  # <- switch
        with torch.no_grad():
            for sentences, _ in loader:
                model(sentences.to(device)).argmax(-1)


if __name__ == "__main__":
    main()
