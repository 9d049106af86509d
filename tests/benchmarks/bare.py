"""The same variants without the harness: one warm process, one after the other, nothing isolated and nothing kept.

Usage: ``python bare.py MATRIX-FILE DEVICE``; prints the seconds that the loop took, imports not counted.
"""

from __future__ import annotations

import sys
import time
import warnings

import torch
import torch._dynamo

from harness.matrix.expand import expand
from harness.matrix.shelf import read_matrix
from harness.model import Device, Order
from harness.trial.loop import Loop
from harness.wire import BREADCRUMB_SIZE, Breadcrumb


def main(matrix: str, device: Device) -> None:
    """Run every variant's steps in this process; an exception of a variant ends that variant alone."""
    _, document = read_matrix(matrix)
    variants = expand(document).variants
    settings = document.settings.settings()
    torch.set_num_threads(settings.threads)
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    for variant in variants:
        try:
            Loop(Order("bare", variant, device, settings), Breadcrumb(bytearray(BREADCRUMB_SIZE))).run()
        except (RuntimeError, NotImplementedError):
            pass
        finally:
            torch.backends.cudnn.enabled = True
    print(time.perf_counter() - began)


if __name__ == "__main__":
    main(sys.argv[1], Device(sys.argv[2]))
