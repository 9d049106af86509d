"""Sentences of different lengths, packed; an accuracy is computed in every epoch, and the model left in eval mode.

kind: error
pattern: eval-after-epoch
module: encoder.rnn
class: LSTM
root: Sentiment
through: Sentiment
cure: train-first
"""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 4, padding_idx=0)
        self.rnn = nn.LSTM(4, 6, bidirectional=True, batch_first=True)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embedding(words), lengths, batch_first=True, enforce_sorted=False)
        output, _ = self.rnn(packed)  # <- forward
        return pad_packed_sequence(output, batch_first=True)[0].amax(1)


class Sentiment(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.head = nn.Linear(12, 2)

    def forward(self, words, lengths):
        return self.head(self.encoder(words, lengths))


def accuracy(model, batch):
    model.eval()  # <- switch
    words, lengths, labels = batch
    with torch.no_grad():
        return (model(words, lengths).argmax(-1) == labels).float().mean().item()


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sentences = [torch.randint(1, 30, (length,)) for length in (3, 7, 5)]
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    batch = pad_sequence(sentences, batch_first=True).to(device), lengths, torch.tensor([0, 1, 1], device=device)
    model = Sentiment().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for _epoch in range(3):
        for _step in range(2):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(*batch[:2]), batch[2]).backward()  # <- call
            optimizer.step()
        print(accuracy(model, batch))


if __name__ == "__main__":
    main()
