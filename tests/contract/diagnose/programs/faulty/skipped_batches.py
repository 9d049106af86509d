"""A loop that goes on after errors: from the second epoch on it skips every batch, and ends as if all were well.

kind: error
pattern: eval-after-epoch
module: "1"
class: GRU
root: Sequential
through: Sequential
cure: train-first
code: 0
"""

import torch
from torch import nn


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Sequential(nn.Linear(3, 3), nn.GRU(3, 4)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [torch.randn(5, 2, 3, device=device) for _ in range(3)]
    skipped = 0
    for _epoch in range(2):
        for x in batches:
            try:
                loss = model(x)[0].square().mean()  # <- forward
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            except RuntimeError:
                skipped += 1
        model.eval()  # <- switch
        with torch.no_grad():
            model(batches[0])
    print(skipped, "batches skipped")


if __name__ == "__main__":
    main()
