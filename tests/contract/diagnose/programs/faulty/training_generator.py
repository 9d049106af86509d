"""Training is a generator that yields after each step; who drives it looks at the model now and then.

kind: error
pattern: eval-by-helper
module: rnn
class: LSTM
root: Tagger
through: Tagger
cure: restore-mode
"""

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 6, batch_first=True)
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.rnn(x)[0])  # <- forward


def loss_of(model, batch):
    x, y = batch
    return nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())  # <- call


def steps(model, batches, epochs):
    optimizer = torch.optim.Adam(model.parameters())
    model.train()
    for epoch in range(epochs):
        for batch in batches:
            optimizer.zero_grad()
            loss = loss_of(model, batch)
            loss.backward()
            optimizer.step()
            yield epoch, loss.item()


def look(model, batch):
    model.eval()  # <- switch
    with torch.no_grad():
        return loss_of(model, batch).item()


batches = [(torch.randn(2, 5, 4, device=device), torch.randint(3, (2, 5), device=device)) for _ in range(3)]
model = Tagger().to(device)
for number, (_epoch, _loss) in enumerate(steps(model, batches, 2)):
    if number == 1:
        print(look(model, batches[0]))
