"""A pretrained encoder is frozen and put into eval mode between an adapter and a head that both learn.

kind: error
pattern: rnn-eval-rest-train
module: encoder
class: LSTM
root: Adapted
through: LSTM
cure: eval-gradients
"""

import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.adapter = nn.Linear(3, 5)
        self.encoder = encoder
        self.head = nn.Linear(7, 2)

    def forward(self, x):
        output, _ = self.encoder(self.adapter(x))  # <- forward
        return self.head(output[-1])


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Adapted(nn.LSTM(5, 7, num_layers=2, dropout=0.2)).to(device)
    model.encoder.requires_grad_(False)
    optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.1)
    for _epoch in range(2):
        model.train()
        model.encoder.eval()  # <- switch
        for _step in range(2):
            x, y = torch.randn(6, 4, 3, device=device), torch.randint(2, (4,)).to(device)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()  # <- call
            optimizer.step()


if __name__ == "__main__":
    main()
