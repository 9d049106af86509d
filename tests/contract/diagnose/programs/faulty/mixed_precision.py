"""Mixed precision with a gradient scaler, gradients of two batches at a time; a validation that forgets the mode.

kind: error
pattern: eval-after-epoch
module: body.rnn
class: LSTM
root: Net
through: Net
cure: train-first
"""

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HALF = torch.float16 if DEVICE == "cuda" else torch.bfloat16


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 8)

    def forward(self, x):
        return self.rnn(x)[0]  # <- forward


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = Body()
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.body(x)[-1])


def validate(model, batches):
    model.eval()  # <- switch
    with torch.inference_mode(), torch.autocast(DEVICE, dtype=HALF):
        return [model(x).argmax(-1) for x, _ in batches]


def main():
    model = Net().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler(DEVICE)
    batches = [(torch.randn(5, 2, 4).to(DEVICE), torch.tensor([0, 1]).to(DEVICE)) for _ in range(4)]
    for epoch in range(2):
        for number, (x, y) in enumerate(batches, 1):
            with torch.autocast(DEVICE, dtype=HALF):
                loss = nn.functional.cross_entropy(model(x), y) / 2  # <- call
            scaler.scale(loss).backward()
            if number % 2 == 0:
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
        print(epoch, len(validate(model, batches)))


if __name__ == "__main__":
    main()
