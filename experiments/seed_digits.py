"""Where the images of seed_brnn_mnist.py come from: MNIST, or scikit-learn's handwritten digits in its place.

MNIST is read from disk, or downloaded. Where neither works, the digits that scikit-learn bundles are enlarged to
MNIST's size and used instead; ``Images.name`` and ``Images.reason`` then say so, and the program shows both.
"""

import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import torch
from torch import nn
from torch.utils.data import TensorDataset

PIXELS = 28  # the height and width of an image
DIGITS = "scikit-learn digits (not MNIST)"
NOT_MNIST = "They are 1,797 images of 8x8 pixels, enlarged to 28x28; accuracy on them says nothing about MNIST."

PROBE_SECONDS = 5.0  # how long a download site may take to answer at all
DOWNLOAD_SECONDS = 90.0  # how long the whole download (11 MB) may take
DOWNLOADER = """
import socket, sys
from torchvision.datasets import MNIST
socket.setdefaulttimeout(10)
MNIST(sys.argv[1], download=True)
"""


class MnistUnavailableError(OSError):
    """MNIST cannot be had; the message says why."""


@dataclass(frozen=True)
class Images:
    """Images of shape (28, 28) with values in 0..1, and their labels; what they are, and why it is these."""

    train: TensorDataset
    test: TensorDataset
    name: str
    reason: str


def load_images(choice: str, data_dir: Path) -> Images:
    """Load ``mnist``, ``digits``, or with ``auto`` MNIST if it can be had, and else the digits."""
    if choice == "digits":
        return load_digits(f"These digits were asked for. {NOT_MNIST}")
    try:
        return load_mnist(data_dir)
    except MnistUnavailableError as error:
        if choice == "mnist":
            raise MnistUnavailableError(f"MNIST cannot be had: {error}") from error
        return load_digits(f"MNIST cannot be had ({error}), so these digits stand in for it. {NOT_MNIST}")


def load_digits(reason: str) -> Images:
    """Return scikit-learn's digits, enlarged to 28x28, with one in five kept for testing."""
    from sklearn import datasets

    bundled = datasets.load_digits()
    small = torch.tensor(bundled.images, dtype=torch.float32).unsqueeze(1) / 16
    images = nn.functional.interpolate(small, size=(PIXELS, PIXELS), mode="bilinear").squeeze(1)
    labels = torch.tensor(bundled.target, dtype=torch.int64)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))  # the same split in every run
    test, train = order.tensor_split([len(order) // 5])
    return Images(
        train=TensorDataset(images[train], labels[train]),
        test=TensorDataset(images[test], labels[test]),
        name=DIGITS,
        reason=reason,
    )


def load_mnist(data_dir: Path) -> Images:
    """Return MNIST from ``data_dir``, downloading it first if it is not there."""
    how = "found"
    if (found := read_mnist(data_dir)) is None:
        how = "downloaded and put"
        download_mnist(data_dir)
        if (found := read_mnist(data_dir)) is None:
            raise MnistUnavailableError("its download was incomplete")
    train, test = found
    return Images(train, test, name="MNIST", reason=f"It was {how} in the folder {data_dir}.")


def read_mnist(data_dir: Path) -> tuple[TensorDataset, TensorDataset] | None:
    """Return MNIST's training set and test set, or None if ``data_dir`` does not hold them."""
    from torchvision.datasets import MNIST

    files = [data_dir / "MNIST" / "raw" / name.removesuffix(".gz") for name, _ in MNIST.resources]
    if not all(file.exists() for file in files):
        return None
    try:
        train, test = MNIST(data_dir, train=True), MNIST(data_dir, train=False)
    except (AssertionError, LookupError, OSError, RuntimeError, ValueError) as error:
        raise MnistUnavailableError(f"its files in the folder {data_dir} are damaged") from error
    return TensorDataset(train.data / 255, train.targets), TensorDataset(test.data / 255, test.targets)


def download_mnist(data_dir: Path) -> None:
    """Download MNIST, in bounded time, and leave nothing half-done in ``data_dir``.

    torchvision's download knows no time limit and writes straight to where the files belong. So it runs in a process
    that can be stopped and in a folder that goes away, and only a complete download is moved to ``data_dir``.
    """
    from torchvision.datasets import MNIST

    if not any_answers(MNIST.mirrors):
        raise MnistUnavailableError("it is not on this disk, and its download sites do not answer")
    data_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mnist-download-", dir=data_dir) as folder:
        command = [sys.executable, "-c", DOWNLOADER, folder]
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=DOWNLOAD_SECONDS, check=True)
        except subprocess.TimeoutExpired as error:
            raise MnistUnavailableError(f"its download took over {DOWNLOAD_SECONDS:.0f} seconds") from error
        except subprocess.CalledProcessError as error:
            raise MnistUnavailableError("its download failed") from error
        raw = data_dir / "MNIST" / "raw"
        raw.mkdir(parents=True, exist_ok=True)
        for file in Path(folder, "MNIST", "raw").iterdir():
            file.replace(raw / file.name)


def any_answers(urls: Sequence[str]) -> bool:
    """Say within seconds whether any site answers, even where the look-up of its name hangs."""
    answers: queue.Queue[bool] = queue.Queue()
    for url in urls:
        threading.Thread(target=lambda site: answers.put(does_answer(site)), args=(url,), daemon=True).start()
    try:
        return any(answers.get(timeout=PROBE_SECONDS) for _ in urls)
    except queue.Empty:
        return False


def does_answer(url: str) -> bool:
    """Say whether a site answers, be it with an HTTP error."""
    try:
        with urlopen(Request(url, method="HEAD"), timeout=PROBE_SECONDS):
            return True
    except HTTPError:
        return True
    except (OSError, HTTPException):
        return False
