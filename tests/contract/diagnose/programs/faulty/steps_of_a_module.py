"""A module with a training and a validation step, which share a third; the trainer's validation switches it.

kind: error
pattern: eval-after-epoch
module: rnn
class: LSTM
root: Task
through: Task
cure: train-first
"""

import torch
from torch import nn


class Task(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4, num_layers=2, dropout=0.2)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.rnn(x)[0][-1])  # <- forward

    def shared_step(self, batch):
        x, y = batch
        return nn.functional.cross_entropy(self(x), y)  # <- call

    def training_step(self, batch):
        return self.shared_step(batch)

    def validation_step(self, batch):
        loss = self.shared_step(batch)
        assert not self.training
        return loss.item()


class Trainer:
    def __init__(self, epochs):
        self.epochs = epochs

    def fit(self, task, training, validation):
        self.task, self.optimizer = task, torch.optim.Adam(task.parameters())
        for epoch in range(self.epochs):
            self.training_loop(training)
            print(epoch, len(self.validation_loop(validation)))

    def training_loop(self, loader):
        for batch in loader:
            loss = self.task.training_step(batch)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def validation_loop(self, loader):
        self.task.eval()  # <- switch
        with torch.no_grad():
            return [self.task.validation_step(batch) for batch in loader]


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    batches = [(torch.randn(5, 2, 3, device=device), torch.tensor([0, 1], device=device)) for _ in range(3)]
    Trainer(epochs=2).fit(Task().to(device), batches, batches[:1])
