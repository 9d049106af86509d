"""harness: reproduce, track and price the fixes of PyTorch's cuDNN RNN backward error."""

__version__ = "0.1.0"
