"""A trainer with callbacks: the one that logs predictions every few steps puts the model into eval mode.

kind: error
pattern: eval-by-helper
module: model.encoder
class: LSTM
root: Task
through: Task
cure: restore-mode
"""

import torch
from torch import nn


class Task(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.model = nn.ModuleDict({"encoder": nn.LSTM(3, 5), "head": nn.Linear(5, 2)})

    def forward(self, x):
        output, _ = self.model["encoder"](x)  # <- forward
        return self.model["head"](output[-1])

    def training_step(self, batch):
        x, y = batch
        return nn.functional.cross_entropy(self(x), y)  # <- call


class LogPredictions:
    def on_batch_end(self, trainer, step):
        if step % 2:
            trainer.task.eval()  # <- switch
            with torch.no_grad():
                trainer.log.append(trainer.task(trainer.sample).argmax(-1))


class Trainer:
    def __init__(self, task, callbacks):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.task, self.callbacks = task.to(self.device), callbacks
        self.sample = torch.randn(4, 2, 3, device=self.device)
        self.log = []

    def fit(self, loader, epochs):
        optimizer = torch.optim.Adam(self.task.parameters())
        for _ in range(epochs):
            self.task.train()
            for step, batch in enumerate(loader):
                optimizer.zero_grad()
                self.task.training_step([part.to(self.device) for part in batch]).backward()
                optimizer.step()
                for callback in self.callbacks:
                    callback.on_batch_end(self, step)


if __name__ == "__main__":
    batches = [(torch.randn(4, 2, 3), torch.tensor([0, 1])) for _ in range(5)]
    Trainer(Task(), [LogPredictions()]).fit(batches, epochs=2)
