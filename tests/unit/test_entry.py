"""The last lines of the command: whatever happened, a sentence that steers no terminal, and an exit code."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn

import pytest

from harness import campaign, cli
from harness.cli import entry
from harness.errors import HarnessError, InterruptedRunError, LeftAtOnceError
from harness.launch.stop import StopRequest


def end_of(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> object:
    """The exit code of a command that raises ``error``."""

    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    monkeypatch.setattr(sys, "argv", ["harness", "plan"])
    monkeypatch.setattr(campaign, "choose", fail)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


def test_asked_a_third_time_it_says_that_nothing_recorded_is_lost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stop = StopRequest()
    stop.ask()
    stop.ask()
    with pytest.raises(LeftAtOnceError) as caught:
        stop.ask()
    assert end_of(caught.value, monkeypatch) == 130
    sentence, advice = filter(None, capsys.readouterr().err.splitlines())
    assert sentence.startswith("harness: left at once: what was recorded is kept")
    assert "harness sync" in advice


def test_a_fourth_time_changes_nothing_of_that(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        try:
            raise LeftAtOnceError
        finally:
            raise KeyboardInterrupt
    except KeyboardInterrupt as error:
        assert end_of(error, monkeypatch) == 130
    assert "left at once" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyboardInterrupt(), "harness: interrupted\n"),
        (InterruptedRunError("stopped: 3 of 4", "more"), "harness: stopped: 3 of 4\nmore\n"),
    ],
)
def test_an_interruption_is_a_sentence(
    error: BaseException, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert end_of(error, monkeypatch) == 130
    assert capsys.readouterr().err.lstrip("\n") == said


def test_once_all_is_said_there_is_nothing_left_to_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert end_of(HarnessError("no"), monkeypatch) == 4
    signal.raise_signal(signal.SIGINT)


def test_an_interruption_of_the_last_words_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(entry, "_told", interrupted)
    assert end_of(HarnessError("no"), monkeypatch) == 130


def test_a_sentence_steers_no_terminal_and_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = "cannot read a  b\x1b[2J\x9b\u202e\ud800\r\n  Traceback (most\x07\nlast" + "x" * 10_000
    assert end_of(HarnessError(hostile, hostile), monkeypatch) == 4
    sentence, advice = capsys.readouterr().err.splitlines()
    assert sentence.startswith("harness: cannot read a  b\\x1b[2J\\x9b\\u202e\\ud800 Traceback (most\\x07 last")
    assert max(len(sentence), len(advice)) < 1100
    assert (sentence + advice).isprintable()
