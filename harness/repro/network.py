"""The text of the network and its data: only the layers, options and steps that one variant has."""

from __future__ import annotations

from dataclasses import dataclass

from harness.model import Variant, format_value
from harness.placements import Action, Placement
from harness.repro.text import block, call, deeper

CLASSES = 4


@dataclass(frozen=True, slots=True)
class Shape:
    """A variant and its placement, with the few facts that several lines of the script depend on."""

    variant: Variant
    placement: Placement
    device: str

    @property
    def batch_first(self) -> bool:
        """Whether the batch is the first dimension."""
        return bool(self.variant["batch-first"])

    @property
    def packed(self) -> bool:
        """Whether the input is packed, and lengths travel with every batch."""
        return bool(self.variant["packed"])

    @property
    def features(self) -> int:
        """What the RNN puts out per time step."""
        directions = 2 if self.variant["bidirectional"] else 1
        return directions * (int(self.variant["proj-size"]) or int(self.variant["hidden-size"]))

    @property
    def dtype(self) -> str:
        """The dtype of weights and inputs as an argument of ``to``, after the device; empty for float32."""
        return "" if self.variant["dtype"] == "float32" else f", torch.{self.variant['dtype']}"

    @property
    def has_norm(self) -> bool:
        """Whether a batch norm follows the RNN."""
        return self.variant["norm"] == "batch-norm"

    @property
    def has_dropout(self) -> bool:
        """Whether a ``Dropout`` follows the RNN."""
        return self.variant["dropout"] != 0


def network(shape: Shape) -> list[str]:
    """The class ``Net``."""
    return block(
        "class Net(nn.Module):",
        [
            *block("def __init__(self):", ["super().__init__()", *_layers(shape)]),
            "",
            *block(f"def forward(self, x{', lengths' if shape.packed else ''}):", _forward(shape)),
        ],
    )


def _layers(shape: Shape) -> list[str]:
    size = shape.variant["input-size"]
    lines = [f"self.encoder = nn.Linear({size}, {size})"] if shape.placement.freeze_rnn else []
    lines += _rnn(shape.variant)
    if shape.has_norm:
        lines.append(f"self.norm = nn.BatchNorm1d({shape.features})")
    if shape.has_dropout:
        lines.append(f"self.dropout = nn.Dropout({format_value(shape.variant['dropout'])})")
    return [*lines, f"self.head = nn.Linear({shape.features}, {CLASSES})"]


def _rnn(variant: Variant) -> list[str]:
    cell = str(variant["cell"])
    options = [str(variant["input-size"]), str(variant["hidden-size"])]
    if variant["layers"] != 1:
        options.append(f"num_layers={variant['layers']}")
    if cell == "rnn-relu":
        options.append('nonlinearity="relu"')
    if not variant["bias"]:
        options.append("bias=False")
    if variant["batch-first"]:
        options.append("batch_first=True")
    if variant["dropout"] != 0:
        options.append(f"dropout={format_value(variant['dropout'])}")
    if variant["bidirectional"]:
        options.append("bidirectional=True")
    if variant["proj-size"] != 0:
        options.append(f"proj_size={variant['proj-size']}")
    kind = {"lstm": "LSTM", "gru": "GRU"}.get(cell, "RNN")
    return call(f"self.rnn = nn.{kind}", options, depth=2)


def _forward(shape: Shape) -> list[str]:
    lines = ["self.train()"] if Action.TRAIN in shape.placement.inside_forward else []
    if shape.placement.freeze_rnn:
        lines.append("x = self.encoder(x)")
    lines += _pooled(shape)
    if shape.has_norm:
        lines.append("x = self.norm(x)")
    if shape.has_dropout:
        lines.append("x = self.dropout(x)")
    return [*lines, "return self.head(x)"]


def _pooled(shape: Shape) -> list[str]:
    """The mean over time."""
    time = 1 if shape.batch_first else 0
    if not shape.packed:
        return ["x, _ = self.rnn(x)", f"x = x.mean({time})"]
    first = ["batch_first=True"] if shape.batch_first else []
    return [
        *call("x = pack_padded_sequence", ["x", "lengths", *first, "enforce_sorted=False"], depth=2),
        "x, _ = self.rnn(x)",
        *call("x, _ = pad_packed_sequence", ["x", *first], depth=2),
        f"x = x.sum({time}) / lengths.to(x.device, x.dtype).unsqueeze(1)",
    ]


def draw_batch(shape: Shape) -> list[str]:
    """The function that draws a batch of noise with random targets."""
    variant = shape.variant
    batch, seq = variant["batch"], variant["seq-len"]
    turned = "" if shape.batch_first else ".transpose(0, 1).contiguous()"
    lines = [
        *call("x = torch.randn", [str(batch), str(seq), str(variant["input-size"]), "generator=noise"], depth=1),
        f"y = torch.randint({CLASSES}, ({batch},), generator=noise)",
    ]
    drawn = [f'x{turned}.to("{shape.device}"{shape.dtype})', f'y.to("{shape.device}")']
    if shape.packed:
        lines += [
            f"lengths = torch.randint(1, {int(seq) + 1}, ({batch},), generator=noise)",
            f"lengths[0] = {seq}",
        ]
        drawn.append("lengths")
    return ["def draw_batch():", *deeper([*lines, f"return {', '.join(drawn)}"])]
