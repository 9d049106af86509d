"""What a worker measures, raw and frozen: blocks of steps, the machine under them, and how exact a gradient is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MachineState:
    """What the machine was doing when a block had just ended; None is what could not be read.

    ``load`` is the 1-minute load average of the host, ``cpu_mhz`` the mean clock of the cores that may be used. The
    rest is the GPU's: its SM clock in MHz, temperature in degrees Celsius, power in watts, why it is slowed down
    (NVML's reasons, idleness left out), and how many other processes compute on it.
    """

    load: float | None = None
    cpu_mhz: float | None = None
    sm_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    throttled: tuple[str, ...] | None = None
    foreign_processes: int | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed block of training steps, as measured; never an average.

    ``wall_s`` is the monotonic clock around the block, ended by a synchronisation; ``device_s`` the time between
    two CUDA events, absent on a CPU. ``forward_s``, ``backward_s`` and ``optimizer_s`` are sums over the block's
    steps, by CUDA events where there is a GPU, else by the monotonic clock; together they are the block. A block that
    was timed as a whole has none of them: to look inside costs time. ``steady`` marks the blocks that are timed after
    the epochs.
    """

    epoch: int
    steps: int
    wall_s: float
    device_s: float | None = None
    warmup: bool = False
    steady: bool = False
    forward_s: float | None = None
    backward_s: float | None = None
    optimizer_s: float | None = None
    machine: MachineState | None = None


@dataclass(frozen=True, slots=True)
class Exactness:
    """What was seen of one gradient, taken the way the placement takes it, on the initial weights and one batch.

    The reference is the gradient that the person wants, in float64 on the CPU. An error is the norm of the difference
    over the norm of the reference; that of the weights covers all that are trained. Modules go by their names in the
    network. ``train_wanted`` lists those with dropout or statistics that the person wants in train mode; the next
    four, what each of them really did in the forward. ``changed`` names what the placement leaves behind otherwise
    than it was: modes, dropouts, weights, statistics, the cuDNN flag.
    """

    gradient_error_weights: float | None = None
    gradient_error_input: float | None = None
    precision: str | None = None
    """The coarsest arithmetic that was allowed: a dtype, or ``tf32``."""
    tolerance: float | None = None
    """The largest error that this precision explains."""
    outputs_equal_eval: bool | None = None
    """Whether the outputs are, to the bit, those of the whole net in eval mode on the same device."""
    gradient_digest: str | None = None
    """Equal only for bitwise equal gradients."""
    train_wanted: tuple[str, ...] = ()
    active_dropout: tuple[str, ...] = ()
    inactive_dropout: tuple[str, ...] = ()
    batch_statistics: tuple[str, ...] = ()
    running_statistics: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    not_comparable: str | None = None
    """Why there is no error: what the reference lacks, or how the gradient could not be taken again."""
