"""A VAE draws samples every hundred steps, in eval mode; the next training step goes through decoder and encoder.

kind: error
pattern: eval-by-helper
module: encoder
class: GRU
root: SequenceVAE
through: SequenceVAE
cure: restore-mode
"""

import torch
from torch import nn


class SequenceVAE(nn.Module):
    def __init__(self, size=4, latent=3):
        super().__init__()
        self.encoder = nn.GRU(size, 8, batch_first=True)
        self.to_latent = nn.Linear(8, 2 * latent)
        self.decoder = nn.LSTMCell(latent, 8)
        self.out = nn.Linear(8, size)
        self.latent = latent

    def decode(self, latent, steps):
        state, pieces = None, []
        for _ in range(steps):
            state = self.decoder(latent, state)
            pieces.append(self.out(state[0]))
        return torch.stack(pieces, 1)

    def forward(self, series):
        _, hidden = self.encoder(series)  # <- forward
        mean, log_variance = self.to_latent(hidden[-1]).chunk(2, -1)
        latent = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(-1).mean()
        return self.decode(latent, series.shape[1]), divergence

    def sample(self, count, steps, device):
        self.eval()  # <- switch
        with torch.inference_mode():
            return self.decode(torch.randn(count, self.latent, device=device), steps)


def main():
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = SequenceVAE().to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(1, 8):
        series = torch.randn(4, 5, 4, device=device)
        rebuilt, divergence = model(series)
        optimizer.zero_grad()
        (nn.functional.mse_loss(rebuilt, series) + 0.1 * divergence).backward()
        optimizer.step()
        if step % 5 == 0:
            print(step, tuple(model.sample(2, 6, device).shape))


if __name__ == "__main__":
    main()
