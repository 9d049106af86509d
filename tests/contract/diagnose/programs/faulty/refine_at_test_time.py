"""The evaluation of a forecaster refines a latent by gradient before it predicts, with the model in eval mode.

kind: error
pattern: inner-loop-in-eval
module: decoder
class: GRU
root: Decoder
through: Decoder
cure: eval-gradients
"""

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.decoder = nn.GRU(3, 6)
        self.out = nn.Linear(6, 2)

    def forward(self, latent, steps):
        output, _ = self.decoder(latent.expand(steps, -1, -1))  # <- forward
        return self.out(output)


def refine(model, observed, rounds=3):
    latent = torch.zeros(1, observed.shape[1], 3, device=DEVICE, requires_grad=True)
    optimizer = torch.optim.SGD([latent], lr=0.1)
    for _ in range(rounds):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(latent, len(observed)), observed).backward()  # <- call
        optimizer.step()
    return latent.detach()


def evaluate(model, series):
    model.eval()  # <- switch
    latent = refine(model, series[:3])
    with torch.no_grad():
        return model(latent, len(series))


def main():
    model = Decoder().to(DEVICE)
    latents = nn.Parameter(torch.zeros(1, 4, 3, device=DEVICE))
    optimizer = torch.optim.Adam([*model.parameters(), latents])
    series = torch.randn(5, 4, 2, device=DEVICE)
    for _epoch in range(2):
        model.train()
        for _step in range(2):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(latents, 5), series).backward()
            optimizer.step()
        evaluate(model, series)


if __name__ == "__main__":
    main()
