"""The witness leaves everything as it is, counts what runs, and forgives its own faults."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from harness.diagnose import facts
from harness.diagnose.collected import collect, prepare
from harness.diagnose.facts import Count
from harness.diagnose.witness.notes import Notes
from harness.diagnose.witness.watcher import Watcher
from tests.watched import PRELUDE, findings, seen

SERVICES = {
    "script": "torch.jit.script(Net())(x).sum().backward()\n",
    "trace": "torch.jit.trace(nn.GRU(4, 5).eval(), x)(x)\n",
    "copy": "import copy\ncopy.deepcopy(copy.copy(nn.LSTM(4, 5)))(x)[0].sum().backward()\n",
    "pickle": "import pickle\npickle.loads(pickle.dumps(nn.GRU(4, 5)))(x)[0].sum().backward()\n",
    "save": "import io\nf = io.BytesIO()\ntorch.save(nn.RNN(4, 5), f)\nf.seek(0)\n"
    "torch.load(f, weights_only=False)(x)[0].sum().backward()\n",
    "functional": "net = Net()\ntorch.func.functional_call(net, dict(net.named_parameters()), (x,)).sum().backward()\n",
    "grad of grad": "net = Net()\ny = x.clone().requires_grad_()\n(g,) = torch.autograd.grad(net(y).sum(), y, "
    "create_graph=True)\ng.sum().backward()\n",
    "func.grad": "net = Net()\nwith torch.backends.mkldnn.flags(enabled=False):\n"
    "    torch.func.grad(lambda y: net(y).sum())(x)\n",
    "jvp": "net = Net()\nwith torch.backends.mkldnn.flags(enabled=False):\n"
    "    torch.func.jvp(lambda y: net(y).sum(), (x,), (x,))\n",
    "parametrized": "rnn = nn.LSTM(4, 5)\n"
    "torch.nn.utils.parametrizations.weight_norm(rnn, 'weight_hh_l0')\nrnn(x)[0].sum().backward()\n",
    "data parallel": "nn.DataParallel(Net(), [0])(x).sum().backward()\n",
    "swa": "from torch.optim.swa_utils import AveragedModel\nAveragedModel(Net()).train()(x).sum().backward()\n",
    "packed": "from torch.nn.utils.rnn import pack_padded_sequence as pack\n"
    "nn.GRU(4, 5)(pack(x, [2, 2, 1]))[0].data.sum().backward()\n",
    "unbatched": "nn.GRU(4, 5)(x[:, 0])[0].sum().backward()\n",
    "a module with a length": "class Some(nn.ModuleList):\n    def forward(self, x):\n        return self[0](x)[0]\n\n"
    "Some([nn.GRU(4, 5)]).train()(x).sum().backward()\n",
    "an odd object": "class Odd:\n    __hash__ = None\n    @property\n    def __dict__(self):\n"
    "        raise ValueError\n    def __eq__(self, other):\n        raise ValueError\n\n"
    "odd = Odd()\nnet = Net()\nnet(x).sum().backward()\n",
}


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.filterwarnings("ignore")
def test_what_pytorch_offers_still_works(tmp_path: Path, name: str) -> None:
    assert findings(tmp_path, SERVICES[name]) == ()


def test_names_are_looked_for_without_asking_the_persons_objects(tmp_path: Path) -> None:
    strange = SERVICES["an odd object"].replace("net = Net()", "net = Net().eval()")
    (found,) = findings(tmp_path, strange)
    assert found.cure.edits[-1].code == "with harness.eval_gradients(net):"


def test_it_counts(tmp_path: Path) -> None:
    found = seen(
        tmp_path,
        f"{PRELUDE}\nnet = Net()\nloss = net(x).sum() + net(x).sum()\nloss.backward()\n"
        "net(x)\nwith torch.no_grad():\n    net(x)\nnet(x).sum().backward()\n",
    )
    counted = {count: found.count(count) for count in (Count.FORWARDS, Count.CUDNN_FORWARDS, Count.BACKWARDS)}
    assert counted == {Count.FORWARDS: 5, Count.CUDNN_FORWARDS: 4, Count.BACKWARDS: 2}


def test_a_fault_of_ours_ends_the_watching_and_not_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare(tmp_path)
    watcher = Watcher(Notes(tmp_path))
    monkeypatch.setattr(watcher._arrivals, "to_eval_forward", lambda *_: 1 / 0)
    watcher.open()
    try:
        rnn = torch.nn.LSTM(3, 4).eval()
        for _ in range(2):
            rnn(torch.ones(2, 1, 3))[0].sum().backward()
    finally:
        watcher.close()
    found = collect(tmp_path)
    assert found.failed is not None
    assert "ZeroDivisionError" in found.failed
    assert found.facts == {}


def test_many_findings_are_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "".join("net(x).sum().backward()\n" for _ in range(facts.MOST_FACTS + 3))
    found = seen(tmp_path, f"{PRELUDE}\nnet = Net().eval()\n{body}")
    assert len(found.facts) == facts.MOST_FACTS
    assert set(found.times.values()) == {1}


def test_half_a_line_counts_as_none(tmp_path: Path) -> None:
    prepare(tmp_path)
    (tmp_path / facts.NOTES).write_bytes(b'{"exception": "ValueError", "message": "no"}\n{"fact": {"number": 1, "wh')
    found = collect(tmp_path)
    assert (found.exception, found.facts) == ("ValueError", {})
