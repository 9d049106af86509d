"""Two towers meet in one score; the recall after each epoch puts both into eval mode.

Which of them the backward comes to first is PyTorch's choice: the one that was called last.

kind: error
pattern: eval-after-epoch
module: rnn
class: LSTM
root: Tower
through: Tower
cure: train-first
"""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4, num_layers=2, dropout=0.2)
        self.head = nn.Linear(4, 2)

    def forward(self, words):
        return self.head(self.rnn(words)[0][-1])  # <- forward


def recall(queries, documents, pairs):
    queries.eval()
    documents.eval()  # <- switch
    with torch.no_grad():
        return [int((queries(query) @ documents(document).T).argmax()) for query, document in pairs]


def main():
    queries, documents = Tower().to(device), Tower().to(device)
    optimizer = torch.optim.Adam([*queries.parameters(), *documents.parameters()])
    pairs = [(torch.randn(5, 2, 3, device=device), torch.randn(7, 2, 3, device=device)) for _ in range(2)]
    for epoch in range(2):
        for query, document in pairs:
            asked = queries(query)
            found = documents(document)  # <- call
            scores = asked @ found.T
            optimizer.zero_grad()
            nn.functional.cross_entropy(scores, torch.arange(2, device=device)).backward()
            optimizer.step()
        print(epoch, len(recall(queries, documents, pairs)))


if __name__ == "__main__":
    main()
