"""The entry point: every way to fail becomes a sentence, an advice and an exit code."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path

import click

from harness.cli.root import ReaderLeftError, cli
from harness.errors import HarnessError, LeftAtOnceError
from harness.quoting import clean

LONGEST_SENTENCE = 1000
"""Characters of a sentence that are shown: it may quote what a person or another program wrote."""


def main() -> None:
    """The entry point: every way to fail becomes a sentence, an advice and an exit code."""
    _occupy_standard_descriptors()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a file name that is no text, a terminal without Unicode
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _main()
    except (ReaderLeftError, BrokenPipeError):
        _silence()
        code = 0
    except KeyboardInterrupt:  # while we were telling how it ended
        code = 130
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is said and done: there is nothing left to interrupt
    sys.exit(code)


def _occupy_standard_descriptors() -> None:
    """Where the shell closed one (``>&-``), the next file opened would get its number, and a child write into that."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def _silence() -> None:
    """Nobody reads us any more; without this Python would complain while it closes the streams."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _main() -> int:
    try:
        code = cli.main(standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where a full disk can still be told
        return code if isinstance(code, int) else 0
    except HarnessError as error:
        return _told(str(error), error.advice, error.exit_code)
    except click.ClickException as error:
        return _shown(error)
    except (KeyboardInterrupt, click.Abort) as error:
        return _interrupted(error)
    except (ReaderLeftError, BrokenPipeError):
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _told(f"{where}{error.strerror or error}", _advice(error), 4)
    except Exception:
        traceback.print_exc()
        return _told("a fault in harness itself, see above", "Please report it with the lines above.", 4)


def _advice(error: OSError) -> str:
    if error.errno in {errno.EMFILE, errno.ENFILE}:
        return "Allow more open files with `ulimit -n 1024`."
    try:
        Path.cwd()
    except OSError:
        return "The current folder was deleted; change to another."
    return "Is the disk full, or the place not yours to write to?"


def _interrupted(error: BaseException) -> int:
    """Click makes something else of what was raised, and one more Ctrl-C may have come on the way here."""
    link: BaseException | None = error
    while link is not None and not isinstance(link, LeftAtOnceError):
        link = link.__cause__ or link.__context__
    return _told(link.sentence, link.advice, 130) if link else _told("interrupted", "", 130)


def _shown(error: click.ClickException) -> int:
    if isinstance(error, click.UsageError) and error.ctx is None:  # Click knows of no usage to show with it
        return _told(error.format_message().rstrip("."), "`harness --help` shows what can be asked for.", 2)
    with _unheard():
        error.show()
    return error.exit_code


def _told(sentence: str, advice: str, code: int) -> int:
    with _unheard():
        click.echo(f"harness: {_tame(sentence)}", err=True)
        if advice:
            click.echo(_tame(advice), err=True)
    return code


def _tame(text: str) -> str:
    """``text``, which may quote what others wrote, as one line that steers no terminal; its spaces are its own."""
    line = re.sub(r"\s*\n\s*", " ", clean(text).strip())
    return line if len(line) <= LONGEST_SENTENCE else f"{line[: LONGEST_SENTENCE - 1]}…"


@contextmanager
def _unheard() -> Iterator[None]:
    """Nobody may be there to be told; the exit code says it too."""
    try:
        yield
    except OSError:
        _silence()
