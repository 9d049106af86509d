"""Which input moved the prediction: a gradient in eval mode through a GRU inside nn.Sequential.

kind: error
pattern: eval-always
module: "1.0"
class: GRU
root: Sequential
through: Sequential
cure: eval-gradients
"""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class LastOutput(nn.Module):
    def forward(self, outputs):
        return outputs[0][:, -1]


model = nn.Sequential(
    nn.Linear(3, 4),
    nn.Sequential(nn.GRU(4, 6, batch_first=True, bidirectional=True), LastOutput()),
    nn.Dropout(0.2),
    nn.Linear(12, 2),
).to(device)
model.eval()  # <- switch

series = torch.randn(1, 10, 3, device=device, requires_grad=True)
scores = model(series)  # <- forward
scores[0, scores.argmax()].backward()
print(series.grad.abs().sum(-1).shape)
