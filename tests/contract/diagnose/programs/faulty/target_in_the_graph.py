"""A target network in eval mode whose values enter the loss without detach(); nobody wants its gradient.

kind: error
pattern: eval-output-reused
module: rnn
class: LSTM
root: Values
through: Values
cure: [no-grad, detach]
"""

import copy

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Values(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, observations):
        output, _ = self.rnn(observations)  # <- forward
        return self.head(output)


def main():
    values = Values().to(device)
    target = copy.deepcopy(values)
    target.eval()  # <- switch
    optimizer = torch.optim.Adam(values.parameters())
    for step in range(4):
        values.train()
        observations = torch.randn(6, 4, 3, device=device)
        future = target(observations).max(-1).values  # <- call
        loss = nn.functional.smooth_l1_loss(values(observations)[..., 0], 0.9 * future)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 2:
            target.load_state_dict(values.state_dict())


if __name__ == "__main__":
    main()
