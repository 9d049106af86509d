"""Inputs that no command can make sense of, by hand; what they share is how they have to end."""

from __future__ import annotations

from harness.matrix.axes import make_variant
from harness.model import Device, Outcome, Plan, Record, Settings

RUN = "20260101-000000-aaaaa"
LONG = "x" * 5000
BYTES = "\udcff\udcfe"
"""A byte that is no UTF-8, as Python passes it on from a shell."""

MANY = list(range(1, 300))

AXES = "axes: {cell: [lstm]}\n"
YAML: dict[str, str | bytes] = {
    "empty": "",
    "a comment": "# nothing\n",
    "a scalar": "cell",
    "a number": "42",
    "a list": "- cell\n- gru\n",
    "null": "null",
    "no axes": "description: x\n",
    "axes that are null": "axes:\n",
    "axes that are a list": "axes: [cell]\n",
    "axes that are a word": "axes: cell\n",
    "an axis without values": "axes: {cell: []}\n",
    "an axis that is null": "axes: {cell: }\n",
    "an axis of a mapping": "axes: {cell: {lstm: 1}}\n",
    "an axis of lists": "axes: {cell: [[lstm]]}\n",
    "an unknown axis": "axes: {cel: [lstm]}\n",
    "an axis that is a number": "axes: {1: [lstm]}\n",
    "an axis that is null itself": "axes: {null: [lstm]}\n",
    "an axis twice": "axes: {cell: lstm, cell: gru}\n",
    "an axis in two spellings": "axes: {seq-len: 4, seq_len: 8}\n",
    "an unknown value": "axes: {cell: [lstn]}\n",
    "a value of another kind": "axes: {bidirectional: [maybe]}\n",
    "a fraction of a layer": "axes: {layers: [1.5]}\n",
    "no layers": "axes: {layers: [0]}\n",
    "fewer than no layers": "axes: {layers: [-1]}\n",
    "more layers than atoms": "axes: {layers: [999999999999999999999999]}\n",
    "a dropout beyond one": "axes: {dropout: [1.5]}\n",
    "a dropout that is no number": "axes: {dropout: [.nan]}\n",
    "an endless dropout": "axes: {dropout: [.inf]}\n",
    "a date": "axes: {layers: [2020-01-01]}\n",
    "a date that is none": "axes: {layers: [2020-13-45]}\n",
    "a key too many": AXES + "axis: {}\n",
    "a misspelt key": AXES + "excludes: []\n",
    "settings that are a list": AXES + "settings: [1]\n",
    "an unknown setting": AXES + "settings: {epoch: 3}\n",
    "a setting of another kind": AXES + "settings: {epochs: many}\n",
    "a switch for a number": AXES + "settings: {epochs: on}\n",
    "no epochs": AXES + "settings: {epochs: 0}\n",
    "nothing but warm-up": AXES + "settings: {epochs: 1}\n",
    "an endless deadline": AXES + "settings: {deadline: .inf}\n",
    "a deadline that is no number": AXES + "settings: {deadline: .nan}\n",
    "a deadline before the start": AXES + "settings: {deadline: -1}\n",
    "a seed that is too large": AXES + "settings: {seed: 99999999999999999999}\n",
    "too many replicates": AXES + "settings: {replicates: 100000}\n",
    "an exclusion without a reason": AXES + "exclude: [{match: {cell: lstm}}]\n",
    "an exclusion with an empty reason": AXES + "exclude: [{match: {cell: lstm}, reason: ' '}]\n",
    "an exclusion of nothing": AXES + "exclude: [{match: {}, reason: x}]\n",
    "an exclusion that is a word": AXES + "exclude: [cell]\n",
    "exclusions that are a mapping": AXES + "exclude: {match: {cell: lstm}, reason: x}\n",
    "an inclusion that is a word": AXES + "include: [cell]\n",
    "an inclusion of an unknown axis": AXES + "include: [{cel: lstm}]\n",
    "a description that is a list": AXES + "description: [1]\n",
    "an open bracket": "axes: {cell: [lstm\n",
    "a tab for an indent": "axes:\n\tcell: lstm\n",
    "two documents": AXES + "---\n" + AXES,
    "an undefined anchor": "axes: *nothing\n",
    "an anchor that contains itself": "axes: &a {cell: *a}\n",
    "a document that contains itself": "&a [*a]\n",
    "a merge of a list": "x: &x {cell: lstm}\naxes: {<<: [*x, *x]}\n",
    "a tag of Python": "axes: !!python/object/apply:os.system ['echo owned']\n",
    "a tag of ours": "axes: !mine {cell: lstm}\n",
    "a set": "axes: !!set {cell}\n",
    "binary": "axes: !!binary aGVsbG8=\n",
    "a key that is a list": "{[1]: 2}\n",
    "a key that is a mapping": "? {a: b}\n: c\n",
    "deep nesting": "[" * 3000 + "]" * 3000,
    "deep mappings": "{a: " * 2000 + "1" + "}" * 2000,
    "a null byte": "axes: \x00\n",
    "a control character": "axes: {cell: '\x1b[2J'}\n",
    "a reversing character": "axes: {cell: '\u202e'}\n",
    "half of a character for an axis": 'axes: {"\\ud800": lstm}\n',
    "half of a character for a value": 'axes: {cell: "\\ud800"}\n',
    "half of a character for a key": AXES + '"\\udfff": 1\n',
    "half of a character in a reason": AXES + 'exclude: [{match: {cell: lstm}, reason: "\\ud800"}]\n',
    "UTF-16": AXES.encode("utf-16"),
    "Latin-1": "description: über\naxes: {cell: lstm}\n".encode("latin-1"),
    "an image": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
    "a gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
    "JSON that is cut": '{"axes": {"cell": ["lstm"',
    "a very long key": f"{LONG}: 1\n",
    "a very long value": f"axes: {{cell: {LONG}}}\n",
    "more than a mebibyte": "#" * (1 << 20) + "\n" + AXES,
    "too many combinations": f"axes: {{cell: all, placement: all, layers: {MANY}, batch: {MANY}}}\n",
    "too many inclusions": AXES + "include:\n" + "- {cell: gru}\n" * 50_000,
    "too many exclusions": AXES + "exclude:\n" + "- {match: {cell: gru}, reason: x}\n" * 20_000,
    "nothing that is left": AXES + "exclude: [{match: {cell: lstm}, reason: x}]\n",
}

OVERRIDES = (
    "", "=", "cell", "cell=", "=lstm", "cell=lstn", "cel=lstm", "cell==lstm", "cell=lstm,", "cell=,lstm", "cell=,",
    "cell=lstm;gru", "cell =lstm ,", "bidirectional=yes please", "bidirectional=2", "layers=0", "layers=-1",
    "layers=1.5", "layers=1e9", "layers=99999999999999999999", "layers=0x10", "layers=٣x", "dropout=2", "dropout=nan",
    "dropout=inf", "dropout=-0.1", "hidden-size=", "seq-len=abc", "placement=*", "placement=eval_always ",
    "placement=../../x", "dtype=float33", "cudnn=maybe", "program=x", "__class__=x", "cell\x1b[2J=lstm",
    "cell=\x1b[2J", f"cell={BYTES}", f"{LONG}=1", f"cell={LONG}", "cell=lstm\nlayers=2", "cell='lstm'", 'cell="lstm"',
    "cell=[lstm]", "cell=$(echo lstm)", "😀=1",
)  # fmt: skip

GLOBS = (
    "", "nothing", "[", "[!", "[]", "***nothing***", "cell=gru*cell=lstm", "{a,b}", "(", "\\", "\x1b[2J", BYTES, LONG,
    "a\nb", "*" * 200 + "nothing", "placement=eval-always\x00", "😀", "..", "/", "^.*$",
)  # fmt: skip

RUNS = (
    "", " ", ".", "..", "/", "../..", "../../etc", "/etc/passwd", "~", "~root", "*", "?", "[a-z]*", "latest ",
    "Latest", "30", "~nobody-here", "~nobody-here/x", "20991231-000000-zzzzz", f"{RUN}/", f"./{RUN}",
    f"{RUN}/../{RUN}", f"{RUN}\x00", f"{RUN}\n", RUN.upper(), f"{RUN}x", "a" * 81, LONG, BYTES, "\x1b[2J", "\u202e",
    "😀", "null", "0", "plan.json", "%2e%2e%2f", "$(reboot)", "`reboot`", "; reboot", "C:\\runs", "\\\\host\\share",
    "file:///etc/passwd", "http://127.0.0.1:9/", ".mlflow.lock",
)  # fmt: skip

KEYS = (
    "", " ", "0", "f" * 12, "f" * 13, "0123456789ab", "zzzzzzzzzzzz", "cell=nothing", "cell=gru=", "==", "[",
    "*nothing*", "..", "/etc", "\x1b[2J", BYTES, LONG, "😀", "a\nb", "latest", "cell=lstm,cell=gru", "None",
)  # fmt: skip

URIS = (
    "", " ", "x", "mlruns", "./mlruns", "/tmp/nowhere", "file:///tmp/x", "ftp://host/x", "sqlite", "sqlite:",
    "sqlite:/", "sqlite://", "sqlite:///", "sqlite:///a?b", "sqlite:///a%20b", "sqlite:///\x00", "://", "http",
    "http:", "http://", "https:///x", "nonsense://x", "javascript:alert(1)", "\x1b[2J://x", BYTES, LONG, "😀://x",
    "s3://bucket/x", "postgres://u:secret@h/db", "http://[::1", "http://host:port", "http://host:0", "http://a b",
    "http://:5000", "http://host:99999", "uc:x", "databricks-uc", "http://\x1b[31m", "http://host/\x00",
)  # fmt: skip

EXPECTED: dict[str, str | bytes] = {
    "empty": "",
    "a list": "- 1\n",
    "no rules": "rules:\n",
    "rules that are a word": "rules: x\n",
    "a rule that is a word": "rules: [x]\n",
    "a rule without an outcome": "rules: [{match: {cell: lstm}, reason: x}]\n",
    "a tag of Python": "rules: !!python/object/apply:os.system ['echo owned']\n",
    "an open bracket": "rules: [\n",
    "bytes": b"\xff\xfe\x00",
    "a matrix": AXES,
}

PLACES = (
    "",
    " ",
    "nothing",
    "nothing.yaml",
    "..",
    "/",
    "/proc/self/mem",
    "/dev/full",
    "\x1b[2J",
    BYTES,
    LONG,
    "a\x00b",
    "😀",
)
"""Where no file of expectations is."""


def kept() -> tuple[Plan, Record]:
    """A run of one variant, and its record."""
    variant = make_variant({})
    plan = Plan(RUN, "quick", "", "2026-01-01T00:00:00+00:00", (Device.CPU,), Settings(), (variant,))
    return plan, Record(RUN, variant.key, variant.label, Device.CPU, Outcome.OK)
