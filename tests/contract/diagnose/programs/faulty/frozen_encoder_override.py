"""The same held in place by an override of train(), so that nothing the training loop does can help.

kind: error
pattern: rnn-eval-rest-train
module: encoder
class: GRU
root: Captioner
through: GRU
cure: eval-gradients
"""

import torch
from torch import nn


class Captioner(nn.Module):
    def __init__(self):
        super().__init__()
        self.prompt = nn.Parameter(torch.zeros(2, 1, 4))
        self.encoder = nn.GRU(4, 6)
        self.head = nn.Linear(6, 3)
        for parameter in self.encoder.parameters():
            parameter.requires_grad = False

    def train(self, mode=True):
        super().train(mode)
        self.encoder.eval()  # <- switch
        return self

    def forward(self, words):
        prompted = torch.cat([self.prompt.expand(-1, words.shape[1], -1), words])
        output, _ = self.encoder(prompted)  # <- forward
        return self.head(output)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Captioner().to(device)
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad])
for _epoch in range(2):
    model.train()
    for _step in range(2):
        scores = model(torch.randn(5, 3, 4, device=device))
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), torch.zeros(21, dtype=torch.long, device=device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
