"""Two models share an encoder: eval() on the one that is validated puts the other one's encoder into eval mode.

kind: error
pattern: eval-after-epoch
module: encoder
class: GRU
root: Translator
through: Scorer
cure: train-first
"""

import torch
from torch import nn


class Translator(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(5, 4)

    def forward(self, words):
        return self.head(self.encoder(words)[0])  # <- forward


class Scorer(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.body = nn.ModuleList([encoder, nn.Linear(5, 1)])

    def forward(self, words):
        encoder, head = self.body
        return head(encoder(words)[0].mean(0))


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    encoder = nn.GRU(3, 5)
    translator, scorer = Translator(encoder).to(device), Scorer(encoder).to(device)
    optimizer = torch.optim.Adam(translator.parameters())
    translator.train()
    for _epoch in range(2):
        for _step in range(2):
            optimizer.zero_grad()
            words = torch.randn(6, 2, 3, device=device)
            translator(words).logsumexp(-1).mean().backward()
            optimizer.step()
        scorer.eval()  # <- switch
        with torch.no_grad():
            print(scorer(torch.randn(6, 2, 3, device=device)).shape)


if __name__ == "__main__":
    main()
