"""cuDNN off for the whole process: a gradient in eval mode on purpose, and none of cuDNN's checks."""

import torch
from torch import nn

torch.backends.cudnn.enabled = False


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.rnn = nn.GRU(4, 6, batch_first=True)
        self.head = nn.Linear(6, 2)

    def forward(self, words):
        embedded = self.embedding(words)
        embedded.retain_grad()
        return self.head(self.rnn(embedded)[1][-1]), embedded


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Model().to(device)
    model.eval()
    scores, embedded = model(torch.tensor([[1, 2, 3, 4]], device=device))
    scores[:, 0].sum().backward()
    print(embedded.grad.norm(dim=-1).shape)


if __name__ == "__main__":
    main()
