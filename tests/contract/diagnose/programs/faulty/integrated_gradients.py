"""Attribution of a classifier's score to its inputs, along a path from a baseline, in eval mode as it should be.

kind: error
pattern: eval-always
module: rnn
class: LSTM
root: Classifier
through: Classifier
cure: eval-gradients
"""

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 8, num_layers=2, dropout=0.5, batch_first=True)
        self.dropout = nn.Dropout(0.3)
        self.head = nn.Linear(8, 3)

    def forward(self, series):
        output, _ = self.rnn(series)  # <- forward
        return self.head(self.dropout(output[:, -1]))


class IntegratedGradients:
    def __init__(self, forward):
        self.forward = forward

    def attribute(self, inputs, baseline, target, steps=5):
        total = torch.zeros_like(inputs)
        for step in range(1, steps + 1):
            point = (baseline + step / steps * (inputs - baseline)).requires_grad_()
            score = self.forward(point)[:, target].sum()  # <- call
            total += torch.autograd.grad(score, point)[0]
        return (inputs - baseline) * total / steps


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Classifier().to(device)
    model.eval()  # <- switch
    series = torch.randn(2, 6, 4, device=device)
    attribution = IntegratedGradients(model).attribute(series, torch.zeros_like(series), target=1)
    print(tuple(attribution.shape))
