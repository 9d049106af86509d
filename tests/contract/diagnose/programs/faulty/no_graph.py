"""Another error that articles take for this one: under no_grad() there is no graph to go back through.

kind: error
pattern: eval-no-grad
module: ""
class: LSTM
root: LSTM
says: does not require grad and does not have a grad_fn
cure: enable-grad
"""

import torch
from torch import nn


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.LSTM(3, 4).to(device).eval()
    with torch.no_grad():
        output, _ = model(torch.randn(5, 2, 3, device=device))  # <- forward
    output.sum().backward()


if __name__ == "__main__":
    main()
