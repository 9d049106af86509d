"""A pretrained model comes in eval mode, as libraries hand them out, and is fine-tuned as it came.

Nothing tells this from learning in eval mode on purpose, so that both remedies are right.

kind: error
pattern: eval-then-use
module: backbone.rnn
class: LSTM
root: Classifier
through: Classifier
cure: [eval-gradients, train-first]
"""

import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 5, num_layers=2, dropout=0.1, batch_first=True)

    def forward(self, x):
        return self.rnn(x)[0].mean(1)  # <- forward


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = Backbone()
        self.head = nn.Linear(5, 2)

    def forward(self, x):
        return self.head(self.backbone(x))

    @classmethod
    def from_pretrained(cls, weights):
        model = cls()
        model.load_state_dict(weights)
        model.eval()  # <- switch
        return model


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Classifier.from_pretrained(Classifier().state_dict()).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    for _step in range(3):
        x, y = torch.randn(2, 5, 3, device=device), torch.tensor([0, 1], device=device)
        loss = nn.functional.cross_entropy(model(x), y)  # <- call
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
