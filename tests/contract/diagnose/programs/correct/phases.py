"""One loop for training and validation, which sets the mode and the gradients at the top of each phase."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4, num_layers=2, dropout=0.2)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.rnn(x)[0][-1])


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Model().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.randn(5, 2, 3, device=device), torch.tensor([0, 1], device=device)
    loaders = {"train": [(x, y)] * 3, "val": [(x, y)]}
    for _epoch in range(2):
        for phase in ("train", "val"):
            model.train(phase == "train")
            for inputs, labels in loaders[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    loss = nn.functional.cross_entropy(model(inputs), labels)
                if phase == "train":
                    loss.backward()
                    optimizer.step()


if __name__ == "__main__":
    main()
