"""Dynamic evaluation of a language model: it keeps learning from the text that it is tested on, in eval mode.

kind: error
pattern: eval-then-use
module: rnn
class: LSTM
root: LanguageModel
through: LanguageModel
cure: eval-gradients
"""

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class LanguageModel(nn.Module):
    def __init__(self, words=12):
        super().__init__()
        self.embedding = nn.Embedding(words, 5)
        self.rnn = nn.LSTM(5, 5, num_layers=2, dropout=0.4)
        self.head = nn.Linear(5, words)
        self.head.weight = self.embedding.weight

    def forward(self, text, state=None):
        output, state = self.rnn(self.embedding(text), state)  # <- forward
        return self.head(output), state


def dynamic_evaluation(model, text, lr, length=8):
    model.eval()  # <- switch
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    total, state = 0.0, None
    for start in range(0, len(text) - length, length):
        piece = text[start : start + length + 1]
        scores, state = model(piece[:-1], state)  # <- call
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), piece[1:].flatten())
        total += loss.item()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        state = tuple(part.detach() for part in state)
    return total


def main():
    text = torch.randint(12, (40, 2)).to(DEVICE)
    print(dynamic_evaluation(LanguageModel().to(DEVICE), text, lr=0.01))


if __name__ == "__main__":
    main()
