"""A gradient in eval mode, taken inside harness.eval_gradients()."""

import torch
from torch import nn

import harness


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 8, num_layers=2, dropout=0.5, batch_first=True)
        self.dropout = nn.Dropout(0.3)
        self.head = nn.Linear(8, 3)

    def forward(self, series):
        output, _ = self.rnn(series)
        return self.head(self.dropout(output[:, -1]))


def saliency(model, series, label):
    series = series.clone().requires_grad_()
    with harness.eval_gradients(model):
        model(series)[:, label].sum().backward()
    return series.grad.abs().amax(-1)


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Classifier().to(device).eval()
    print(saliency(model, torch.randn(2, 6, 4, device=device), label=1).shape)
    assert not any(module.training for module in model.modules())
