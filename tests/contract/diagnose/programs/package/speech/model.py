"""The model."""

from torch import nn


class Speech(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4, bidirectional=True)
        self.head = nn.Linear(8, 2)

    def forward(self, sound):
        return self.head(self.rnn(sound)[0].mean(0))  # <- forward
