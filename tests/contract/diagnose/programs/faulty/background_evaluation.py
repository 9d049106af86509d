"""A thread evaluates the model that the main thread goes on training, and switches the mode under its feet.

It waits for the answer, so that train() before the next step is as good as a thread that puts the mode back.

kind: error
pattern: eval-by-helper
module: rnn
class: LSTM
root: Model
through: Model
cure: [restore-mode, train-first]
"""

import queue
import threading

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4)
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.rnn(x)[0])  # <- forward


class Evaluator(threading.Thread):
    def __init__(self, model):
        super().__init__(daemon=True)
        self.model, self.orders, self.answers = model, queue.Queue(), queue.Queue()

    def run(self):
        for x in iter(self.orders.get, None):
            self.model.eval()  # <- switch
            with torch.no_grad():
                self.answers.put(self.model(x).mean().item())


def main():
    model = Model().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    evaluator = Evaluator(model)
    evaluator.start()
    model.train()
    for step in range(6):
        x = torch.randn(5, 2, 3, device=device)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        if step == 2:
            evaluator.orders.put(x)
            print(evaluator.answers.get())
    evaluator.orders.put(None)
    evaluator.join()


if __name__ == "__main__":
    main()
