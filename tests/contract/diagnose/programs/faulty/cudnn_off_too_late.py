"""cuDNN is turned off for the backward alone, where it is too late: the forward in eval mode went through it.

kind: error
pattern: eval-cudnn-off-backward
module: rnn
class: LSTM
root: Reranker
through: Reranker
cure: cudnn-off-forward
"""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Reranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 6, bidirectional=True)
        self.score = nn.Linear(12, 1)

    def forward(self, words):
        output, _ = self.rnn(words)  # <- forward
        return self.score(output.mean(0))


def word_importance(model, words):
    model.eval()  # <- switch
    words = words.clone().requires_grad_()
    score = model(words).sum()
    with torch.backends.cudnn.flags(enabled=False):
        score.backward()
    return words.grad.norm(dim=-1)


if __name__ == "__main__":
    print(word_importance(Reranker().to(device), torch.randn(7, 2, 4, device=device)).shape)
