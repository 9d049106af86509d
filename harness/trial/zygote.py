"""The zygote: imports torch once, then forks a fresh process per attempt.

What would poison its children, and is therefore never done here (each was tried): asking CUDA anything
(``torch.cuda.is_available()`` and ``device_count()`` included), running a backward, using OpenMP.

Conversation on the control socket, one JSON object a line. The coordinator sends ``{"do": "attempt", "name": ...,
"order": ...}`` or ``{"do": "probe", "name": ...}`` together with three file descriptors: the pipe for the result, the
pipe for stdout and stderr, and the breadcrumb's memory. It sends no second request before the first was answered. The
zygote answers ``ready`` once, ``started`` with the pid, and ``exited`` with the wait status and what the child used.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import json
import os
import selectors
import signal
import socket
import sys
import time
from contextlib import suppress
from mmap import mmap
from pathlib import Path
from typing import Any

from harness.model import Order
from harness.wire import BREADCRUMB_SIZE, Breadcrumb, dump, load

DESCRIPTORS = 3

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

LAST_SECONDS = 2.0
"""How long a leaving zygote waits for the ends of what it has killed."""


def serve(control_fd: int) -> int:
    """Take orders until the coordinator closes its end of the socket; then end every child and leave."""
    control = socket.socket(fileno=control_fd)
    control.set_inheritable(False)
    # Ctrl-C reaches the whole foreground group; what becomes of running attempts is the coordinator's decision.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _preload()
    return Zygote(control).run()


def _preload() -> None:
    import torch
    import torch._dynamo  # noqa: F401 - the first optimizer step would import it in every child: about a second each

    from harness.trial import attempt, facts  # noqa: F401

    facts.host_facts()
    warm_up()
    # The children share these pages; a collection that touched every object would copy them.
    gc.collect()
    gc.freeze()


def warm_up() -> None:
    """Do once what every child would do first: a forward with a graph, a loss and an optimizer step, on one thread.

    That pays for lazy initialisation and page faults, about a third of a short attempt. A backward is not among it: it
    would start autograd's threads, which a fork does not copy. One thread, so that no OpenMP pool is made either.
    """
    import torch
    from torch import nn

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    head = nn.Linear(4, 4)
    for cell in (nn.RNN, nn.LSTM, nn.GRU):
        for bidirectional in (False, True):
            rnn = cell(4, 2 if bidirectional else 4, 2, bidirectional=bidirectional, dropout=0.1)
            output, _ = rnn(torch.randn(3, 2, 4))
            nn.functional.cross_entropy(head(output.mean(0)), torch.tensor([0, 1]))
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for weight in head.parameters():
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    optimizer.zero_grad()
    torch.set_num_threads(threads)


class Zygote:
    """The fork server of one device environment."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: dict[int, str] = {}
        self._wake_r, self._wake_w = os.pipe()
        os.set_blocking(self._wake_w, False)
        os.set_blocking(self._wake_r, False)

    def run(self) -> int:
        """Serve until the other end hangs up."""
        signal.set_wakeup_fd(self._wake_w, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # What an attempt leaves behind becomes our child, whatever session it has fled to, and ends with the attempt.
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
        self._send(event="ready", pid=os.getpid())
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(self._wake_r, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                self._reap()
                if self._control in ready and not self._take_request():
                    self._end_children()
                    return 0

    def _send(self, **event: Any) -> None:
        try:
            self._control.sendall(json.dumps(event).encode() + b"\n")
        except OSError:
            # The coordinator is gone; the read side will say so, and that is where it is dealt with.
            return

    def _take_request(self) -> bool:
        """Carry out one request; False once the coordinator has hung up."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, 1 << 16, DESCRIPTORS)
            while data and not data.endswith(b"\n"):
                more = self._control.recv(1 << 16)
                if not more:
                    return False
                data += more
        except ConnectionError:
            return False
        if not data:
            return False
        request = json.loads(data)
        self._fork(request, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def _fork(self, request: dict[str, Any], descriptors: list[int]) -> None:
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            os.close(self._wake_r)
            os.close(self._wake_w)
            _become_child(parent, self._control, request, descriptors)
        self._children[pid] = request["name"]
        self._send(event="started", name=request["name"], pid=pid)

    def _reap(self) -> None:
        try:
            while os.read(self._wake_r, 4096):
                pass
        except BlockingIOError:
            pass
        for pid in list(self._children):
            try:
                done, status, usage = os.wait4(pid, os.WNOHANG)
            except ChildProcessError:
                done, status, usage = pid, -1, None
            if done:
                name = self._children.pop(pid)
                self._end_strays()
                cpu_s = usage.ru_utime + usage.ru_stime if usage else None
                self._send(event="exited", name=name, pid=pid, status=status, cpu_s=cpu_s)
        self._end_strays()

    def _end_strays(self) -> None:
        """Kill and reap what ended attempts have left behind; its own children are adopted, and go the next time."""
        for pid in _own_children():
            if pid not in self._children:
                with suppress(ProcessLookupError, PermissionError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, os.WNOHANG)

    def _end_children(self) -> None:
        for pid in self._children:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        deadline = time.monotonic() + LAST_SECONDS
        self._children.clear()
        while _own_children() and time.monotonic() < deadline:
            self._end_strays()
            time.sleep(0.002)


def _become_child(parent: int, control: socket.socket, request: dict[str, Any], descriptors: list[int]) -> None:
    """Never returns: runs the request and leaves without the interpreter's own ending.

    ``os._exit`` is deliberate. It saves the teardown of a large process, and on the stub it avoids an abort that
    PyTorch's device thread can cause while the interpreter shuts down. Everything that matters is written by then.
    """
    code, me = 1, os.getpid()
    try:
        result_fd, output_fd, crumb_fd = descriptors
        _detach(parent, control, output_fd)
        crumb = Breadcrumb(mmap(crumb_fd, BREADCRUMB_SIZE))
        answer = _probe() if request["do"] == "probe" else _attempt(request["order"], crumb)
        _flush()
        if os.getpid() == me:  # a program may have forked, and come back here twice; only one of the two was ordered
            _write_all(result_fd, answer.encode() + b"\n")
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        _flush()
    finally:
        os._exit(code)


def _detach(parent: int, control: socket.socket, output_fd: int) -> None:
    """A session and process group of its own, no stdin, output into the pipe, and no life beyond the zygote's."""
    os.setsid()
    _die_with(parent)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    control.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(output_fd, 1)
    os.dup2(output_fd, 2)
    # The supervisor asks for a dump of all stacks before it kills an attempt that has overrun its deadline.
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)


def _die_with(parent: int) -> None:
    """Ask Linux to kill this process when the zygote dies, so that no attempt outlives its supervision."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the request was made
        os._exit(1)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)


def _own_children() -> list[int]:
    try:
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except OSError:  # not Linux, or a kernel without this file
        return []


def _flush() -> None:
    """Write out what the program printed; it may have closed or replaced the streams."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


def _attempt(order: str, crumb: Breadcrumb) -> str:
    from harness.trial.attempt import run_order

    return dump(run_order(load(Order, order), crumb))


def _probe() -> str:
    """What this environment offers: is there a GPU, and what is the machine."""
    import torch

    from harness.model import Device
    from harness.trial.facts import device_facts

    has_cuda = torch.cuda.is_available()
    facts = device_facts(Device.CUDA if has_cuda else Device.CPU)
    return json.dumps({"cuda": has_cuda, "cuda_build": torch.version.cuda, "facts": facts})


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
