"""Training and validation share the function that computes the loss; the mode is none of its business.

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
        self.rnn = nn.LSTM(4, 8, num_layers=2, dropout=0.1)
        self.head = nn.Linear(8, 3)

    def forward(self, sequence):
        return self.head(self.rnn(sequence)[0])  # <- forward


def loss_of(model, batch):
    sequence, tags = batch
    return nn.functional.cross_entropy(model(sequence).flatten(0, 1), tags.flatten())  # <- call


def validate(model, batches):
    model.eval()  # <- switch
    with torch.no_grad():
        total = sum(loss_of(model, batch).item() for batch in batches)
    assert not model.training
    return total


def main():
    model = Tagger().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    batches = [(torch.randn(5, 2, 4).to(device), torch.randint(3, (5, 2)).to(device)) for _ in range(3)]
    for _epoch in range(2):
        for batch in batches:
            optimizer.zero_grad()
            loss = loss_of(model, batch)
            loss.backward()
            optimizer.step()
        print(validate(model, batches) >= 0)


if __name__ == "__main__":
    main()
