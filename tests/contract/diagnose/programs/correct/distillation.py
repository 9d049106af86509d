"""A student learns from a larger teacher, which is in eval mode and asked under no_grad()."""

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.rnn = nn.LSTM(3, width, num_layers=2, dropout=0.2)
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        return self.head(self.rnn(x)[0][-1])


def distil(teacher, student, optimizer, batches, temperature=2.0):
    teacher.eval()
    student.train()
    for x in batches:
        with torch.no_grad():
            wanted = (teacher(x) / temperature).softmax(-1)
        got = (student(x) / temperature).log_softmax(-1)
        optimizer.zero_grad()
        nn.functional.kl_div(got, wanted, reduction="batchmean").backward()
        optimizer.step()


def main():
    teacher, student = Net(12).to(DEVICE), Net(5).to(DEVICE)
    optimizer = torch.optim.AdamW(student.parameters())
    batches = [torch.randn(6, 4, 3, device=DEVICE) for _ in range(2)]
    for _epoch in range(2):
        distil(teacher, student, optimizer, batches)
        student.eval()
        with torch.no_grad():
            print((student(batches[0]).argmax(-1) == teacher(batches[0]).argmax(-1)).shape)


if __name__ == "__main__":
    main()
