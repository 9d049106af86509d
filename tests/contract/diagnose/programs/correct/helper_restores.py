"""A helper that samples in the middle of an epoch notes the mode first and restores it."""

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class CharModel(nn.Module):
    def __init__(self, letters=9):
        super().__init__()
        self.embedding = nn.Embedding(letters, 5)
        self.rnn = nn.GRU(5, 6, num_layers=2, dropout=0.1)
        self.head = nn.Linear(6, letters)

    def forward(self, text, state=None):
        output, state = self.rnn(self.embedding(text), state)
        return self.head(output), state


@torch.no_grad()
def sample(model, length=4):
    before = model.training
    model.eval()
    try:
        letter, state, letters = torch.zeros(1, 1, dtype=torch.long, device=device), None, []
        for _ in range(length):
            scores, state = model(letter, state)
            letter = scores.argmax(-1)
            letters.append(letter.item())
        return letters
    finally:
        model.train(before)


def main():
    model = CharModel().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    text = torch.randint(9, (40, 1)).to(device)
    for start in range(0, 36, 6):
        scores, _ = model(text[start : start + 4])
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), text[start + 1 : start + 5].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if start % 12 == 0:
            print(sample(model))


if __name__ == "__main__":
    main()
