"""A case -> the text of a script that ends as its record says: the same exception, uncaught, or the word ``ok``."""

from __future__ import annotations

from harness.errors import UsageError
from harness.matrix.axes import AXES
from harness.model import Device, Settings, Variant
from harness.placements import PLACEMENTS, Placement, Second
from harness.repro.case import Case
from harness.repro.header import header
from harness.repro.network import Shape, draw_batch, network
from harness.repro.text import comment
from harness.repro.training import NO_GRADIENT, loop, set_up

WRITTEN = (
    *("cell", "bidirectional", "cudnn", "placement", "layers", "dropout", "dtype", "autocast", "packed", "proj-size"),
    *("batch-first", "bias", "norm", "batch", "seq-len", "input-size", "hidden-size"),
)
"""The axes that a script knows how to write."""


NEEDS_A_GPU = """\
if not torch.cuda.is_available():
    raise SystemExit("no GPU here; the top of this file says how to do without one")
""".splitlines()
"""Without it the script would end in a traceback about drivers, which reads like the error that it is about."""


def script_of(case: Case) -> str:
    """The script.

    Raises:
        UsageError: the variant is a program of its own, or has an axis that scripts cannot express.
    """
    placement = _placement_of(case.variant)
    device = "cpu" if case.device is Device.CPU else "cuda"
    shape = Shape(case.variant, placement, device)
    sections = [
        [*comment(header(case, placement, device)), *_imports(shape)],
        _start(shape, case.settings),
        ["", *network(shape), ""],
        [*draw_batch(shape), ""],
        *([[*NO_GRADIENT, ""]] if placement.second is Second.UNUSED else []),
        set_up(shape, case.settings),
        [*loop(shape, case.settings), 'print("ok")'],
    ]
    return "\n".join("\n".join([*section, ""]) for section in sections).rstrip() + "\n"


def _placement_of(variant: Variant) -> Placement:
    if "program" in variant.axes:
        raise UsageError(
            f"variant {variant.key} is a program of its own, not one of a matrix",
            "`harness run seed` runs it; its script is in the folder experiments.",
        )
    unwritten = [n for n, v in variant.axes.items() if n not in WRITTEN and (n not in AXES or v != AXES[n].default)]
    odd = unwritten or [name for name in WRITTEN if name not in variant.axes]
    if odd:
        raise UsageError(
            f"no script can be written for variant {variant.key}: it differs in the axis {odd[0]!r} from those known",
            "`harness show` says what it was and what was seen.",
        )
    placement = PLACEMENTS.get(str(variant["placement"]))
    if placement is None:
        raise UsageError(f"this harness knows no placement {variant['placement']!r}", "Use the version that ran it.")
    return placement


def _imports(shape: Shape) -> list[str]:
    packing = ["from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence"]
    return ["import torch", "from torch import nn", *(packing if shape.packed else [])]


def _start(shape: Shape, settings: Settings) -> list[str]:
    cuda = shape.device == "cuda"
    cudnn = ', "cuDNN", torch.backends.cudnn.version()' if cuda else ""
    lines = NEEDS_A_GPU if cuda else []
    lines = [*lines, f'print("torch", torch.__version__{cudnn})']
    if cuda:
        lines.append("print(torch.cuda.get_device_name())")
    if not cuda and settings.threads:
        lines.append(f"torch.set_num_threads({settings.threads})")
    if shape.variant["cudnn"] == "off" or shape.placement.cudnn_off_process:
        lines.append("torch.backends.cudnn.enabled = False")
    return [*lines, f"torch.manual_seed({settings.seed})", f"noise = torch.Generator().manual_seed({settings.seed})"]
