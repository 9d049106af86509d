"""A model wrapped for several GPUs: the wrapper is put into eval mode for a test after the epoch.

kind: error
pattern: eval-after-epoch
module: module.rnn
class: LSTM
root: DataParallel
through: DataParallel
cure: train-first
"""

import torch
from torch import nn
from torch.utils.data import DataLoader


class Video(nn.Module):
    def __init__(self):
        super().__init__()
        self.frame = nn.Sequential(nn.Conv2d(1, 2, 3, stride=2), nn.ReLU(), nn.Flatten())
        self.rnn = nn.LSTM(18, 6, batch_first=True)
        self.head = nn.Linear(6, 3)

    def forward(self, video):
        frames = self.frame(video.flatten(0, 1)).view(*video.shape[:2], -1)
        return self.head(self.rnn(frames)[0][:, -1])  # <- forward


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.DataParallel(Video().to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loader = DataLoader([(torch.randn(3, 1, 8, 8), number % 3) for number in range(4)], batch_size=2)
    model.train()
    for _epoch in range(2):
        for video, label in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(video.to(device)), label.to(device)).backward()  # <- call
            optimizer.step()
        model.eval()  # <- switch
        with torch.inference_mode():
            right = sum((model(video.to(device)).argmax(-1) == label.to(device)).sum() for video, label in loader)
        print(int(right))


if __name__ == "__main__":
    main()
