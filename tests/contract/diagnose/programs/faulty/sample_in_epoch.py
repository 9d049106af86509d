"""A character model writes a sample now and then, in the middle of an epoch, and stays in eval mode.

kind: error
pattern: eval-by-helper
module: rnn
class: GRU
root: CharModel
through: CharModel
cure: restore-mode
"""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
TEXT = "hello world, this is a text " * 8
LETTERS = sorted(set(TEXT))


class CharModel(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.embedding = nn.Embedding(letters, 6)
        self.rnn = nn.GRU(6, 10)
        self.head = nn.Linear(10, letters)

    def forward(self, text, hidden=None):
        output, hidden = self.rnn(self.embedding(text), hidden)  # <- forward
        return self.head(output), hidden


@torch.no_grad()
def sample(model, length=5):
    model.eval()  # <- switch
    letter, hidden, text = torch.zeros(1, 1, dtype=torch.long, device=device), None, ""
    for _ in range(length):
        scores, hidden = model(letter, hidden)
        letter = scores.argmax(-1)
        text += LETTERS[letter.item()]
    return text


codes = torch.tensor([LETTERS.index(letter) for letter in TEXT], device=device)
model = CharModel(len(LETTERS)).to(device)
optimizer = torch.optim.RMSprop(model.parameters())
model.train()
for epoch in range(2):
    for start in range(0, 40, 10):
        piece = codes[start : start + 11, None]
        optimizer.zero_grad()
        scores, _ = model(piece[:-1])  # <- call
        nn.functional.cross_entropy(scores.flatten(0, 1), piece[1:].flatten()).backward()
        optimizer.step()
        if start == 20:
            print(epoch, sample(model))
