"""A module whose author writes ``s`` for ``self``, and calls its methods without calling it.

kind: error
pattern: eval-after-epoch
module: rnn
class: GRU
root: Net
through: Net
cure: train-first
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(s):  # noqa: N805
        super().__init__()
        s.rnn = nn.GRU(3, 4)
        s.dropout = nn.Dropout(0.5)
        s.head = nn.Linear(4, 2)

    def encode(s, x):  # noqa: N805
        assert torch.is_grad_enabled() or not s.training, "a validation in train mode"
        return s.rnn(x)[0][-1]  # <- forward

    def loss(s, x, y):  # noqa: N805
        return nn.functional.cross_entropy(s.head(s.dropout(s.encode(x))), y)


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    batches = [(torch.randn(5, 2, 3, device=device), torch.tensor([0, 1], device=device)) for _ in range(3)]
    net = Net().to(device)
    adam = torch.optim.Adam(net.parameters())
    for epoch in range(2):
        for x, y in batches:
            loss = net.loss(x, y)  # <- call
            adam.zero_grad()
            loss.backward()
            adam.step()
        net.eval()  # <- switch
        with torch.no_grad():
            print(epoch, net.loss(*batches[0]).item())
