"""Two models make a translation; the evaluation after each epoch puts both into eval mode, one after the other.

kind: error
pattern: eval-after-epoch
module: gru
class: GRU
root: Decoder
through: Decoder
cure: train-first
"""

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Encoder(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.gru = nn.GRU(width, width, batch_first=True)

    def forward(self, words):
        return self.gru(self.embedding(words))[1]


class Decoder(nn.Module):
    def __init__(self, width, words):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, words)

    def forward(self, state, target):
        word, scores = torch.zeros_like(target[:, :1]), []
        for place in range(target.shape[1]):
            output, state = self.gru(self.embedding(word), state)  # <- forward
            scores.append(self.out(output))
            word = target[:, place : place + 1]
        return torch.cat(scores, 1)


def train_epoch(data, encoder, decoder, optimizers):
    for source, target in data:
        for optimizer in optimizers:
            optimizer.zero_grad()
        scores = decoder(encoder(source), target)  # <- call
        nn.functional.cross_entropy(scores.flatten(0, 1), target.flatten()).backward()
        for optimizer in optimizers:
            optimizer.step()


def evaluate(encoder, decoder, source, target):
    encoder.eval()
    decoder.eval()  # <- switch
    with torch.no_grad():
        return decoder(encoder(source), target).argmax(-1)


def train(data, encoder, decoder, epochs):
    optimizers = [torch.optim.Adam(model.parameters()) for model in (encoder, decoder)]
    for epoch in range(1, epochs + 1):
        train_epoch(data, encoder, decoder, optimizers)
        print(epoch, evaluate(encoder, decoder, *data[0]).shape)


if __name__ == "__main__":
    pairs = [(torch.randint(9, (2, 4)).to(device), torch.randint(9, (2, 3)).to(device)) for _ in range(2)]
    train(pairs, Encoder(9, 6).to(device), Decoder(6, 9).to(device), epochs=3)
