"""The command that looks for the error in a person's own script."""

from __future__ import annotations

import click

from harness.cli.root import cli


@cli.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="SCRIPT [ARGS]...")
@click.option("-m", "as_module", is_flag=True, help="SCRIPT is a module, as for python -m.")
@click.option(
    "--device",
    type=click.Choice(["auto", "cuda", "stub", "cpu"]),
    default="auto",
    show_default=True,
    help="auto: the GPU if there is one, else the stub, else the CPU.",
)
@click.option("--json", "path", metavar="PATH", help="Write the diagnosis there too; - is stdout, after all else.")
@click.pass_context
def diagnose(context: click.Context, /, command: tuple[str, ...], as_module: bool, device: str, path: str) -> None:
    """Run your own training script, unchanged, and say which RNN ran in eval mode, who put it there, what to do.

    The script's output and exit code stay its own; the diagnosis follows on stderr. Options stand before SCRIPT.

    \b
    Examples:
      harness diagnose train.py --epochs 1
      harness diagnose --device cpu --json diagnosis.json -m mypackage.train
    """
    from harness.console import diagnosed
    from harness.diagnose.run import diagnose as run

    diagnosed.check_target(path)
    diagnosis = run(("-m", *command) if as_module else command, device)
    diagnosed.show_diagnosis(diagnosis, path)
    context.exit(diagnosis.exit.code)
