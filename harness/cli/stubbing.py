"""Commands about the stub device."""

from __future__ import annotations

import click

from harness.cli.root import cli


@cli.group("stub")
def stub_group() -> None:
    """The stub device: PyTorch's own CUDA code on a machine with no GPU.

    \b
    Examples:
      harness stub info
      harness stub run -- python train.py
    """


@stub_group.command("info")
def stub_info() -> None:
    """Say what was built, for which PyTorch, and what it covers.

    \b
    Example:
      harness stub info
    """
    from harness import console

    console.show_stub()


@stub_group.command("run", context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND [ARGS]...")
@click.pass_context
def stub_run(context: click.Context, /, command: tuple[str, ...]) -> None:
    """Run any command with the stub in front; its exit code becomes this one's.

    \b
    Example:
      harness stub run -- python train.py
    """
    from harness import stub

    context.exit(stub.run(command, started=lambda: click.echo(f"harness: {stub.NOTICE}", err=True)))
