"""A frozen language model in eval mode, in front of which a prompt learns: nothing else has a gradient.

kind: error
pattern: [rnn-eval-rest-train, eval-always]
module: rnn
class: LSTM
root: LanguageModel
through: LanguageModel
cure: eval-gradients
"""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 5, num_layers=2, dropout=0.1)
        self.head = nn.Linear(5, 7)

    def forward(self, embedded):
        return self.head(self.rnn(embedded)[0])  # <- forward


model = LanguageModel().to(device)
model.eval().requires_grad_(False)  # <- switch
prompt = nn.Parameter(torch.randn(3, 1, 4, device=device))
optimizer = torch.optim.Adam([prompt])
wanted = torch.tensor([2], device=device)
for _step in range(3):
    loss = nn.functional.cross_entropy(model(prompt)[-1], wanted)  # <- call
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
