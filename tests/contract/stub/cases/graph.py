"""What people do to the autograd graph around a recurrent layer."""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def _lstm(*, train: bool) -> nn.LSTM:
    return nn.LSTM(4, 8).cuda().train(train)


def _input() -> torch.Tensor:
    return torch.randn(5, 3, 4, device="cuda", requires_grad=True)


def _checkpointed(*, train: bool, reentrant: bool) -> None:
    model = _lstm(train=train)
    checkpoint(lambda x: model(x)[0], _input(), use_reentrant=reentrant).sum().backward()


def checkpoint_train() -> None:
    _checkpointed(train=True, reentrant=False)


def checkpoint_train_reentrant() -> None:
    _checkpointed(train=True, reentrant=True)


def checkpoint_eval() -> None:
    _checkpointed(train=False, reentrant=False)


def checkpoint_eval_reentrant() -> None:
    _checkpointed(train=False, reentrant=True)


def checkpoint_mode_change_between() -> None:
    """The forward of a checkpoint is run again in backward, in the mode of then."""
    model = _lstm(train=True)
    output = checkpoint(lambda x: model(x)[0], _input(), use_reentrant=False)
    model.eval()
    output.sum().backward()


def _functional_call(*, train: bool) -> None:
    model = _lstm(train=train)
    parameters = {name: one.detach().requires_grad_() for name, one in model.named_parameters()}
    torch.func.functional_call(model, parameters, (_input(),))[0].sum().backward()
    assert all(one.grad is not None for one in parameters.values())


def functional_call_train() -> None:
    _functional_call(train=True)


def functional_call_eval() -> None:
    _functional_call(train=False)


def _double_backward(*, cudnn: bool, train: bool = True) -> None:
    x = _input()
    with torch.backends.cudnn.flags(enabled=cudnn):
        output = _lstm(train=train)(x)[0]
    (gradient,) = torch.autograd.grad(output.sum(), x, create_graph=True)
    gradient.pow(2).sum().backward()


def double_backward_cudnn() -> None:
    _double_backward(cudnn=True)


def double_backward_native() -> None:
    _double_backward(cudnn=False)


def double_backward_native_eval() -> None:
    _double_backward(cudnn=False, train=False)


def frozen_rnn_in_eval() -> None:
    model = nn.Sequential(nn.Linear(4, 4)).cuda()
    rnn = _lstm(train=False).requires_grad_(False)
    rnn(model(torch.randn(5, 3, 4, device="cuda")))[0].sum().backward()


def output_of_eval_not_used() -> None:
    rnn, linear = _lstm(train=False), nn.Linear(4, 1).cuda()
    x = _input()
    rnn(x)
    linear(x).sum().backward()


def no_grad() -> None:
    with torch.no_grad():
        output = _lstm(train=False)(_input())[0]
    output.sum().backward()


def train_between_forward_and_backward() -> None:
    model = _lstm(train=False)
    output = model(_input())[0]
    model.train()
    output.sum().backward()


def eval_between_forward_and_backward() -> None:
    model = _lstm(train=True)
    output = model(_input())[0]
    model.eval()
    output.sum().backward()


def cudnn_off_around_backward_only() -> None:
    output = _lstm(train=False)(_input())[0]
    with torch.backends.cudnn.flags(enabled=False):
        output.sum().backward()


def empty_batch() -> None:
    _lstm(train=False)(torch.randn(5, 0, 4, device="cuda", requires_grad=True))[0].sum().backward()


def lstm_cell() -> None:
    hidden, _ = nn.LSTMCell(4, 8).cuda().eval()(torch.randn(3, 4, device="cuda", requires_grad=True))
    hidden.sum().backward()


def data_parallel_train() -> str:
    return _data_parallel(train=True)


def data_parallel_eval() -> str:
    return _data_parallel(train=False)


def _data_parallel(*, train: bool) -> str:
    model = nn.DataParallel(nn.LSTM(4, 8, batch_first=True).cuda()).train(train)
    output = model(torch.randn(6, 5, 4, device="cuda"))[0]
    output.sum().backward()
    return str(output.device)


def vmap_over_rnn() -> None:
    model = _lstm(train=True)
    torch.func.vmap(lambda x: model(x)[0])(torch.randn(2, 5, 3, 4, device="cuda"))


def hook_sees_the_gradient() -> bool:
    seen = []
    model = _lstm(train=True)
    model.register_full_backward_hook(lambda *_: seen.append(True))
    model(_input())[0].sum().backward()
    return bool(seen)


def anomaly_detection() -> None:
    with torch.autograd.detect_anomaly(check_nan=True):
        _lstm(train=False)(_input())[0].sum().backward()


def hidden_state_not_contiguous() -> None:
    hidden = torch.zeros(3, 2, 8, device="cuda").transpose(0, 1)
    nn.GRU(4, 8, num_layers=2).cuda()(_input(), hidden)


def hidden_state_of_the_wrong_size() -> None:
    nn.GRU(4, 8).cuda()(_input(), torch.zeros(1, 3, 9, device="cuda"))


def weights_not_in_one_chunk() -> str:
    import warnings

    model = _lstm(train=True)
    # Through `.data`: a parameter that is replaced as a whole is noticed by nn.LSTM, which makes one chunk again.
    model.weight_hh_l0.data = model.weight_hh_l0.data.clone()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model(_input())[0].sum().backward()
    return str(caught[0].message)[:58] if caught else "no warning"


def weight_norm() -> None:
    model = nn.utils.parametrizations.weight_norm(nn.LSTM(4, 8), "weight_hh_l0").cuda()
    model(_input())[0].sum().backward()


def weight_norm_eval() -> None:
    model = nn.utils.parametrizations.weight_norm(nn.LSTM(4, 8), "weight_hh_l0").cuda().eval()
    model(_input())[0].sum().backward()
