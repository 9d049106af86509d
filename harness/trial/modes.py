"""Carries out a placement's actions on a network."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn

from harness.placements import Action, Around
from harness.trial.network import Net

_DROPOUT_AND_NORM = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._NormBase, nn.LayerNorm)


class Modes:
    """The mode switches of one network. Remembers the RNN's dropout, which one placement sets to zero for a while."""

    def __init__(self, net: Net) -> None:
        self._net = net
        self._rnn_dropout = net.rnn.dropout

    def act(self, actions: Iterable[Action]) -> None:
        """Carry out ``actions`` in order."""
        for action in actions:
            self._act(action)

    def _act(self, action: Action) -> None:
        net = self._net
        match action:
            case Action.TRAIN:
                net.train()
            case Action.EVAL:
                net.eval()
            case Action.RNN_TRAIN:
                net.rnn.train()
            case Action.RNN_EVAL:
                net.rnn.eval()
            case Action.RNN_DROPOUT_ZERO:
                net.rnn.dropout = 0.0
            case Action.RNN_DROPOUT_RESTORE:
                net.rnn.dropout = self._rnn_dropout
            case Action.DROPOUT_NORM_EVAL:
                for module in net.modules():
                    if isinstance(module, _DROPOUT_AND_NORM):
                        module.eval()


def around(context: Around | None) -> AbstractContextManager[object]:
    """A fresh context manager for ``context``."""
    match context:
        case Around.CUDNN_OFF:
            return torch.backends.cudnn.flags(enabled=False)
        case Around.NO_GRAD:
            return torch.no_grad()
        case None:
            return nullcontext()
