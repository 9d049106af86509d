"""The command line where it starts no process: help, plans, and one clear sentence for every mistake."""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from harness import campaign, cli, console, seeds
from harness.campaign import Conditions, Selection
from harness.errors import HarnessError, StubUnavailableError
from harness.model import Device, Outcome, Plan, Record, Settings, Variant
from harness.report import write_report
from harness.store.journal import Journal
from harness.store.layout import Store

ROOT = Path(__file__).parents[2]


def commands(
    group: click.Group = cli.cli, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command and group with the words that call it; the whole first."""
    yield words, group
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name), command


COMMANDS = dict(commands())
LEAVES = {words: command for words, command in COMMANDS.items() if not isinstance(command, click.Group)}
every_command = pytest.mark.parametrize("words", COMMANDS, ids=" ".join)


@dataclass
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test runs in a folder of its own and in nobody's environment."""
    monkeypatch.chdir(tmp_path)
    for name in ("HARNESS_STORE", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """The entry point as the shell calls it."""

    def call(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["harness", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as leaving:
            cli.main()
        captured = capsys.readouterr()
        return Ended(int(leaving.value.code or 0), captured.out, captured.err)

    return call


def help_of(words: tuple[str, ...], flag: str = "--help") -> str:
    result = CliRunner().invoke(cli.cli, [*words, flag], prog_name="harness")
    assert result.exit_code == 0
    return result.stdout


@every_command
def test_help_says_what_it_does_and_shows_how(words: tuple[str, ...]) -> None:
    text = help_of(words)
    assert text == help_of(words, "-h")
    doc = COMMANDS[words].help or ""
    first = doc.strip().splitlines()[0]
    assert len(first.split()) > 3
    example = " ".join(("harness", *words))
    assert example in text.split("Options:")[0].split("\n\n", 1)[1], "an example, besides the line of usage"


@every_command
def test_every_option_and_command_is_explained(words: tuple[str, ...]) -> None:
    command = COMMANDS[words]
    assert [option.name for option in command.params if isinstance(option, click.Option) and not option.help] == []
    if isinstance(command, click.Group):
        assert all(child.get_short_help_str() for child in command.commands.values())


@every_command
def test_every_example_in_a_help_is_a_command_line_that_can_be_parsed(words: tuple[str, ...]) -> None:
    import shlex

    examples = re.findall(r"^ +(harness .*?)(?:  .*)?$", COMMANDS[words].help or "", re.MULTILINE)
    for example in examples:
        arguments = shlex.split(example.split(" > ")[0])[1:]
        command: click.Command = cli.cli
        context = cli.cli.make_context("harness", arguments, resilient_parsing=False)
        while isinstance(command, click.Group):
            name, command_, rest = command.resolve_command(context, [*context._protected_args, *context.args])
            assert command_ is not None
            context = command_.make_context(name, rest, parent=context)
            command = command_


OF_THE_TOP = [(option, name) for option in cli.cli.params for name in option.opts]


@pytest.mark.parametrize("words", [words for words in COMMANDS if words], ids=" ".join)
@pytest.mark.parametrize(("option", "name"), OF_THE_TOP, ids=[name for _, name in OF_THE_TOP])
def test_an_option_of_the_top_after_a_command_is_told_where_it_goes(
    main: Any, words: tuple[str, ...], option: click.Option, name: str
) -> None:
    assert not any(name in each.opts for each in COMMANDS[words].params), "one name, two meanings"
    right = f"harness {name}" if option.is_eager else f"harness {name} {option.metavar} {' '.join(words)} ..."
    for given in ((name,),) if option.is_eager else ((name, "D"), (f"{name}=D",)):
        ended = main(*words, *given, "more")
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.splitlines()[-1] == f"Error: {name} goes before the command: {right}"


@pytest.mark.parametrize("words", [words for words in COMMANDS if words], ids=" ".join)
def test_an_option_of_nobody_is_told_as_before(main: Any, words: tuple[str, ...]) -> None:
    ended = main(*words, "--nobodys")
    assert ended.code == 2
    assert "No such option '--nobodys'" in ended.err


def test_the_readme_shows_the_store_before_the_command() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "`harness --store DIR " in text
    assert re.findall(r"(?<!harness )--store DIR", text) == []


def test_every_command_is_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    missing = [name for words in LEAVES if (name := " ".join(("harness", *words))) not in text]
    assert missing == []


def test_commands_are_short() -> None:
    """Parse, compose, one call: what is longer than this belongs to another room."""
    import inspect

    for words, command in LEAVES.items():
        source = inspect.getsource(getattr(command, "callback"))  # noqa: B009 - typed as optional
        body = re.split(r'"""', source)[-1]
        assert len(body.strip().splitlines()) < 15, words


def test_version_and_bare_call(main: Any) -> None:
    assert re.fullmatch(r"harness, version \d+\.\d+\.\d+\n", main("--version").out)
    ended = main()
    assert ended.code == 2
    assert "run" in ended.err


SELECTIONS = [
    ("quick",),
    ("quick", "-a", "cell=gru", "-a", "cudnn=on"),
    ("matrix", "-k", "cell=lstm*placement=eval*", "-k", "placement=train-always"),
    (),
]


@pytest.mark.parametrize("selection", SELECTIONS, ids=" ".join)
def test_a_dry_run_is_the_plan(main: Any, selection: tuple[str, ...], folder: Path) -> None:
    plan, dry = main("plan", *selection), main("run", "matrix", *selection, "--dry-run")
    assert plan == dry
    assert plan.code == 0
    lines = plan.out.splitlines()
    assert all(re.fullmatch(r"[0-9a-f]{12}  cell=\S+", line) for line in lines)
    assert len(set(lines)) == len(lines) == int(plan.err.split()[0])
    assert list(folder.iterdir()) == [], "a plan leaves nothing behind"


def test_a_plan_narrows(main: Any) -> None:
    whole, part = main("plan", "quick"), main("plan", "quick", "-k", "placement=eval-always", "-a", "cell=lstm")
    assert set(part.out.splitlines()) < set(whole.out.splitlines())
    assert all("cell=lstm" in line and "placement=eval-always" in line for line in part.out.splitlines())


WRONG_USE = {
    "unknown command": (("rum",), 2, "rum"),
    "unknown option": (("plan", "--fast"), 2, "--fast"),
    "unknown axis": (("plan", "quick", "-a", "cel=lstm"), 2, "cell"),
    "unknown value": (("plan", "quick", "-a", "cell=lsmt"), 2, "lstm"),
    "an axis without values": (("plan", "quick", "-a", "cell"), 2, "cell=lstm,gru"),
    "an axis with an empty value": (("plan", "quick", "-a", "cell="), 2, "cell=lstm,gru"),
    "unknown matrix": (("plan", "qick"), 2, "quick"),
    "unknown file": (("run", "matrix", "nowhere/m.yaml"), 2, "nowhere/m.yaml"),
    "a folder for a matrix": (("run", "matrix", "."), 2, "matrix"),
    "unknown device": (("run", "matrix", "--device", "tpu"), 2, "cuda"),
    "replicates": (("run", "matrix", "--replicates", "0"), 2, "1<=x<=1000"),
    "unknown program": (("run", "seed", "mnist"), 2, "brnn-mnist"),
    "a remedy for what is not fixed": (("run", "seed", "simple-rnn", "--remedy", "train-once"), 2, "--fixed"),
    "a remedy for the other program": (("run", "seed", "brnn-mnist", "--fixed", "--remedy", "train-once"), 2, "simple"),
    "data for the other program": (("run", "seed", "simple-rnn", "--data-dir", "d"), 2, "--data-dir"),
    "epochs": (("run", "seed", "simple-rnn", "--epochs", "none"), 2, "none"),
    "no runs": (("report",), 2, "harness run matrix"),
    "no such run": (("report", "20260101-000000-zzzzz"), 2, "there are no runs"),
    "a run out of the store": (("report", "../../etc"), 2, "there are no runs"),
    "a run that is none, to sync": (("sync", "nope"), 2, "there are no runs"),
    "a run that is none, to the UI": (("ui", "nope"), 2, "there are no runs"),
    "no runs, for the UI": (("ui",), 2, "harness run matrix"),
    "a port that is none": (("ui", "--port", "99999"), 2, "65535"),
    "a port that is no number": (("ui", "--port", "http"), 2, "http"),
    "a tracking folder": (("run", "matrix", "quick", "--tracking-uri", "runs"), 2, "sqlite:///"),
    "a store that SQLite cannot name": (("--store", "a?b", "run", "matrix", "quick"), 2, "its path has '?' in it"),
    "a store that it may misread": (("--store", "a%2Fb", "run", "seed", "simple-rnn"), 2, "its path has '%2F' in it"),
    "a store of two lines": (("--store", "a\nb", "run", "matrix", "quick"), 2, r"its path has '\n' in it"),
    "a store of both quotes": (("--store", "a'\"b", "run", "matrix", "quick"), 2, "has both ' and \" in it"),
    "no command for the stub": (("stub", "run"), 2, "COMMAND"),
    "empty selection": (("plan", "quick", "-k", "cell=quantum"), 3, "cell=lstm"),
    "empty after an override": (("plan", "quick", "-a", "cell=gru", "-k", "bidirectional=true"), 3, "cell=gru"),
}


@pytest.mark.parametrize("case", WRONG_USE)
def test_a_mistake_is_one_sentence_with_what_to_do(
    main: Any, case: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, code, hint = WRONG_USE[case]
    monkeypatch.setattr("harness.launch.site.LocalExecutor", FakeExecutor)
    ended = main(*words)
    assert ended.code == code
    assert ended.out == ""
    assert hint in ended.err
    assert "Traceback" not in ended.err
    assert_one_sentence_and_advice(ended.err)
    assert list(folder.iterdir()) == [], "nothing half-written"


class FakeExecutor:
    """Stands where a zygote would be started."""

    def __init__(self, _: object) -> None: ...

    def close(self) -> None: ...


def assert_one_sentence_and_advice(err: str) -> None:
    lines = [line for line in err.splitlines() if line]
    if lines[0].startswith("Usage:"):  # Click's own way
        assert "--help" in lines[1]
        assert lines[2].startswith("Error: ")
        assert len(lines) < 6
    else:
        sentence, advice = lines
        assert sentence.startswith("harness: ")
        assert len(sentence) < 300
        assert advice.endswith((".", "?"))


BAD_MATRICES = {
    "not YAML": ("axes: [cell", "m.yaml"),
    "a tab": ("axes:\n\tcell: lstm\n", "line 2"),
    "a list": ("- cell\n", "m.yaml"),
    "empty": ("", "m.yaml"),
    "unknown key": ("axis: {cell: lstm}\n", "axes"),
    "unknown axis": ("description: d\naxes: {cel: lstm}\n", "cell"),
    "unknown value": ("description: d\naxes:\n  cell: lsmt\n", "lstm"),
    "no reason": ("description: d\naxes: {cell: lstm}\nexclude:\n  - match: {cell: lstm}\n", "reason"),
    "code": ("axes: !!python/object/apply:os.system ['touch owned']\n", "m.yaml"),
    "bytes": (b"\xff\xfe\x00", "UTF-8"),
}


@pytest.mark.parametrize("case", BAD_MATRICES)
def test_a_malformed_matrix_is_one_sentence_with_its_file(main: Any, case: str, folder: Path) -> None:
    content, hint = BAD_MATRICES[case]
    Path("m.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    ended = main("run", "matrix", "m.yaml")
    assert ended.code == 2
    assert "m.yaml" in ended.err
    assert hint in ended.err
    assert "Traceback" not in ended.err
    assert [path.name for path in folder.iterdir()] == ["m.yaml"]


def test_a_matrix_that_excludes_everything_selects_nothing(main: Any) -> None:
    text = "description: d\naxes: {cell: lstm}\nexclude:\n  - {match: {cell: lstm}, reason: on purpose}\n"
    Path("m.yaml").write_text(text)
    ended = main("plan", "m.yaml")
    assert ended.code == 3
    assert "on purpose" in ended.err


def test_a_store_that_is_a_file_is_refused(main: Any) -> None:
    Path("file").write_text("")
    ended = main("--store", "file", "report")
    assert ended.code == 2
    assert "file" in ended.err


def kept_run(store: Store, run: str = "20260301-101500-aaaaa") -> Plan:
    variant = Variant({"cell": "lstm", "placement": "eval-always"}, "cell=lstm,placement=eval-always")
    plan = Plan(run, "quick", "", "2026-03-01T10:15:00+00:00", (Device.CPU,), Settings(), (variant,))
    with Journal.create(store.folder(run), plan) as journal:
        journal.append(Record(run, variant.key, variant.label, Device.CPU, Outcome.OK))
    return plan


@pytest.mark.parametrize("how", ["option", "environment", "cwd"])
def test_the_store_is_found(main: Any, how: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = folder if how == "cwd" else folder / "a store, über #1 & 100%"
    plan = kept_run(Store(root))
    if how == "environment":
        monkeypatch.setenv("HARNESS_STORE", str(root))
    words = ("--store", str(root)) if how == "option" else ()
    assert plan.run in main(*words, "report").out
    assert main(*words, "report", "--format", "csv").out.count(plan.run) == 1


def test_a_run_is_found_by_its_beginning_and_the_nearest_is_named(main: Any) -> None:
    for run in ("20260301-101500-aaaaa", "20260301-101500-bbbbb"):
        kept_run(Store(Path()), run)
    assert "20260301-101500-aaaaa" in main("report", "20260301-101500-a").out
    assert "20260301-101500-bbbbb" in main("report", "latest").out
    for text, hint in (("20260301", "Say which"), ("20260301-101500-aaaab", "Did you mean 20260301-101500-aaaaa")):
        ended = main("report", text)
        assert ended.code == 2
        assert hint in ended.err


def test_a_report_is_what_the_run_left(main: Any) -> None:
    store = Store(Path())
    plan = kept_run(store)
    folder = store.folder(plan.run)
    from harness.store.journal import read_records

    write_report(folder.path, plan, read_records(folder))
    assert main("report", "--format", "csv").out == folder.results.read_text()


DAMAGE = {"plan.json": b"{", "records.jsonl": b'{"run": 1}\n'}


@pytest.mark.parametrize("file", DAMAGE)
def test_a_damaged_run_is_a_sentence(main: Any, file: str) -> None:
    store = Store(Path())
    folder = store.folder(kept_run(store).run)
    (folder.path / file).write_bytes(DAMAGE[file])
    ended = main("report")
    assert ended.code == 4
    assert file in ended.err
    assert "Traceback" not in ended.err


def test_what_is_asked_for_reaches_the_campaign(main: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Selection, Conditions]] = []
    monkeypatch.setattr(campaign, "run_matrix", lambda selection, conditions, _: asked.append((selection, conditions)))
    shown: list[bool] = []
    monkeypatch.setattr(console, "show_finished", lambda *_, quiet: shown.append(quiet))
    uri = "http://me:p@ss@example.org:5000/x"
    ended = main(
        "--store", "s", "run", "matrix", "quick", "-a", "cell=lstm", "-a", "cudnn=on", "-k", "x", "--device", "cpu",
        "--replicates", "3", "--no-tracking", "-q", "--tracking-uri", uri,
    )  # fmt: skip
    assert ended.code == 0
    ((selection, conditions),) = asked
    assert selection == Selection("quick", ("cell=lstm", "cudnn=on"), ("x",))
    assert conditions.store == Store(Path("s"), uri)
    assert (conditions.device, conditions.replicates, conditions.tracked) == ("cpu", 3, False)
    assert conditions.command[:5] == ("harness", "--store", "s", "run", "matrix")
    assert conditions.command[-1] == "http://example.org:5000/x", "no password is kept"
    assert shown == [True]


def test_what_is_asked_for_reaches_the_seed(main: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[seeds.Seed, Conditions]] = []
    monkeypatch.setattr(seeds, "run_seed", lambda seed, conditions, _: asked.append((seed, conditions)))
    monkeypatch.setattr(console, "show_seed", lambda *_: None)
    assert main("run", "seed", "brnn-mnist", "--limit", "300", "--data-dir", "d", "--epochs", "4").code == 0
    assert main("run", "seed", "simple-rnn", "--fixed", "--remedy", "train-in-loop", "--device", "stub").code == 0
    assert main("run", "seed", "simple-rnn", "--as-written").code == 0
    assert [seed for seed, _ in asked] == [
        seeds.Seed("brnn-mnist", epochs=4, limit=300, data_dir=Path("d")),
        seeds.Seed("simple-rnn", fixed=True, remedy="train-in-loop"),
        seeds.Seed("simple-rnn"),
    ]
    assert [conditions.device for _, conditions in asked] == ["auto", "stub", "auto"]
    assert all(conditions.tracked for _, conditions in asked)


def all_harness_errors(kind: type[HarnessError] = HarnessError) -> Iterator[type[HarnessError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from all_harness_errors(child)


KINDS = sorted(set(all_harness_errors()), key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_way_to_fail_has_its_exit_code(
    main: Any, monkeypatch: pytest.MonkeyPatch, kind: type[HarnessError]
) -> None:
    fail_with(monkeypatch, kind("something is wrong", "Mend it."))
    ended = main("plan")
    assert (ended.code, ended.err) == (kind.exit_code, "harness: something is wrong\nMend it.\n")
    assert ended.code in {1, 2, 3, 4, 130}


def test_advice_may_be_absent(main: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(monkeypatch, StubUnavailableError("no stub"))
    assert main("plan").err == "harness: no stub\n"


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (OSError(28, "No space left on device"), 4, "No space left on device"),
        (PermissionError(13, "Permission denied", "a file"), 4, "a file: Permission denied"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (EOFError(), 130, "interrupted"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_what_is_not_ours_is_a_sentence_too(
    main: Any, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, sentence: str
) -> None:
    fail_with(monkeypatch, error)
    ended = main("plan")
    assert ended.code == code
    assert f"harness: {sentence}\n" in ended.err
    assert "Traceback" not in ended.err


def test_too_many_open_files_and_a_deleted_folder_have_their_own_advice(
    main: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fail_with(monkeypatch, OSError(errno.EMFILE, "Too many open files"))
    assert "ulimit -n" in main("plan").err
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    fail_with(monkeypatch, FileNotFoundError(errno.ENOENT, "No such file or directory"))
    assert "The current folder was deleted" in main("plan").err


def test_a_fault_of_ours_is_no_failed_check_and_shows_where(main: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(monkeypatch, ZeroDivisionError("a slip"))
    ended = main("plan")
    assert ended.code == 4
    assert "ZeroDivisionError: a slip" in ended.err
    assert "harness: a fault in harness itself" in ended.err


def fail_with(patch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(_: object) -> None:
        raise error

    patch.setattr(campaign, "choose", fail)


def test_an_unprintable_name_is_still_a_sentence(main: Any) -> None:
    ended = main("plan", "\udcff\x00")
    assert ended.code == 2
    with suppress(UnicodeEncodeError):
        ended.err.encode()
    assert "there is no matrix" in ended.err
