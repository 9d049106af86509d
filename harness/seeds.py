"""The programs that the project started from, run as attempts: each program is a variant, faulty or cured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from harness.campaign import Conditions, Finished, Listener, carry_out, check
from harness.environment import environment
from harness.errors import UsageError
from harness.launch.site import open_site
from harness.matrix.shelf import shelves
from harness.model import Device, Order, Plan, Settings, Value, Variant, format_value
from harness.store.layout import new_run_id

PROGRAMS = {"simple-rnn": "seed_simple_rnn.py", "brnn-mnist": "seed_brnn_mnist.py"}
REMEDIES = ("train-once", "train-in-loop", "train-function")

DEADLINE_S = 3600.0
"""Two epochs over all of MNIST take minutes on a small CPU."""


@dataclass(frozen=True, slots=True)
class Seed:
    """Which program, as it was written or fixed, and on what data. ``remedy`` is for ``simple-rnn`` only."""

    program: str
    fixed: bool = False
    remedy: str | None = None
    epochs: int | None = None
    limit: int | None = None
    data_dir: Path | None = None

    @property
    def variant(self) -> Variant:
        """The program as a variant: its axes are what was chosen."""
        axes: dict[str, Value] = {"program": self.program, "form": "fixed" if self.fixed else "as-written"}
        if self.fixed and self.program == "simple-rnn":
            axes["remedy"] = self.remedy or REMEDIES[0]
        if self.epochs:
            axes["epochs"] = self.epochs
        if self.limit:
            axes["limit"] = self.limit
        return Variant(axes, ",".join(f"{name}={format_value(value)}" for name, value in axes.items()))

    def arguments(self, output: Path) -> tuple[str, ...]:
        """The command line of the program."""
        words = ["--as-written"] if not self.fixed else ["--fixed"]
        if self.fixed and self.program == "simple-rnn":
            words.append(self.remedy or REMEDIES[0])
        words += ["--output-dir", str(output)]
        words += ["--epochs", str(self.epochs)] if self.epochs else []
        words += ["--limit", str(self.limit)] if self.limit else []
        if self.program == "brnn-mnist" and self.data_dir is not None:
            words += ["--data-dir", str(self.data_dir.absolute())]
        return tuple(words)


def locate_program(name: str) -> Path:
    """The file of a seed program.

    Raises:
        UsageError: it is not where it should be.
    """
    file = next((shelf / PROGRAMS[name] for shelf in shelves() if (shelf / PROGRAMS[name]).is_file()), None)
    if file is None:
        raise UsageError(f"the program {PROGRAMS[name]} is missing", "Reinstall harness, or run it in a checkout.")
    return file.absolute()


def run_seed(seed: Seed, conditions: Conditions, listener: Listener) -> Finished:
    """Run ``seed`` on every device, keep its record, plot and checkpoint, and log its losses to MLflow.

    Raises:
        HarnessError: as ``campaign.run_matrix``.
    """
    program = locate_program(seed.program)
    if seed.remedy and not (seed.fixed and seed.program == "simple-rnn"):
        raise UsageError("--remedy says how simple-rnn is fixed", "Use it with `harness run seed simple-rnn --fixed`.")
    if seed.data_dir is not None and seed.program != "brnn-mnist":
        raise UsageError("only brnn-mnist reads a data set from disk", "Leave --data-dir out.")
    check(conditions)
    listener.preparing("starting PyTorch")
    with open_site(conditions.device) as site:
        plan = Plan(
            run=new_run_id(),
            matrix=f"seed {seed.program}",
            description=f"The program {PROGRAMS[seed.program]}, {'fixed' if seed.fixed else 'as written'}.",
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            devices=site.devices,
            settings=replace(Settings(), deadline=DEADLINE_S, threads=0, replicates=conditions.replicates or 1),
            variants=(seed.variant,),
            command=conditions.command,
            environment=environment(),
            notes=tuple(site.notes),
        )
        folder = conditions.store.folder(plan.run).path.absolute()

        def orders(plan: Plan, device: Device) -> Iterator[Order]:
            arguments = seed.arguments(folder / f"seed-{device}")
            for replicate in range(plan.replicates_on(device)):
                yield Order(
                    plan.run,
                    seed.variant,
                    device,
                    plan.settings,
                    replicate,
                    program=str(program),
                    arguments=arguments,
                )

        return carry_out(plan, orders, site, conditions, listener)
