"""A candidate of the fix table in words: its row, and how it is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from harness.exactness import Judgement
from harness.exactness import Verdict as Gradient
from harness.model import Outcome
from harness.report import text
from harness.report.evidence import Evidence
from harness.report.fixes import Advice, Fix, Price

NOT_TESTED = "not tested"

STANDS_FOR = {
    "rnn-train-dropout-zero": (
        "`harness.eval_gradients(model)` calls the kernel with the same arguments (training on, the RNN's dropout 0) "
        "and changes no flag: this row stands for it, but for the time it takes in Python; it has no row of its own."
    ),
}
"""What else a placement speaks for: a cure of this package that no placement of the matrix is made of."""


def row(evidence: Evidence, fix: Fix) -> dict[str, str]:
    """Its cells, short ones; each column that comes from one device names it."""
    verdict = f"**{fix.advice}**" if fix.advice is Advice.USE else str(fix.advice)
    cells = {"placement": fix.placement.name, "verdict": verdict}
    for device in evidence.raising_devices:
        cells[f"raises? ({device})"] = _outcomes(fix.outcomes.get(device, Counter()))
    for device in (device for device in evidence.plan.devices if device.computes):
        judged = fix.gradients.get(device, ())
        cells[f"exact? ({device})"] = _exact(judged)
        cells[f"repeatable? ({device})"] = _repeatable(judged)
        cells[f"throughput ({device})"] = _price(fix.speed.get(device), marks(fix))
        cells[f"memory ({device})"] = _price(fix.memory.get(device))
    cells["side effects"] = _side_effects(fix)
    return cells


def how(fix: Fix) -> str:
    """How it is done, what of its gradient is not as wanted, what it leaves behind, and what else it stands for."""
    recipe = f": {text.code(fix.placement.recipe)}" if fix.placement.recipe else ""
    said = [f"`{fix.placement.name}`{recipe}."]
    said += [f"On `{device}`, {sentence}." for device, judged in fix.gradients.items() for sentence in _why(judged)]
    also = STANDS_FOR.get(fix.placement.name)
    return " ".join((*said, *_left_behind(fix), *([also] if also else [])))


def marks(fix: Fix) -> str:
    """The footnotes of its price."""
    first = "" if fix.placement.applies else "¹"
    return f"{first}²" if fix.placement.freeze_rnn or fix.placement.second else first


def _outcomes(counts: Counter[Outcome]) -> str:
    total = counts.total()
    if not total:
        return ""
    raised = counts[Outcome.BACKWARD_ERROR]
    others = [f"{amount} {o}" for o, amount in counts.items() if o not in (Outcome.OK, Outcome.BACKWARD_ERROR)]
    said = f"RAISES, {raised} of {total}" if raised else f"no, 0 of {total}"
    return ", ".join((said, *others))


VERDICTS = (Gradient.EXACT, Gradient.DIFFERS, Gradient.NOT_REPEATABLE, Gradient.NOT_COMPARABLE)


def _exact(judged: tuple[Judgement, ...]) -> str:
    counts = Counter(judgement.verdict for judgement in judged)
    if len(counts) == 1:
        return str(judged[0].verdict)
    parts = [f"{verdict} in {counts[verdict]}" for verdict in VERDICTS if counts[verdict]]
    return f"{', '.join(parts)} of {len(judged)}" if parts else ""


def _why(judged: tuple[Judgement, ...]) -> Iterator[str]:
    """The reasons for each verdict that is not `exact`."""
    for verdict in VERDICTS[1:]:
        reasons = dict.fromkeys(judgement.reason for judgement in judged if judgement.verdict is verdict)
        if reasons:
            amount = sum(judgement.verdict is verdict for judgement in judged)
            where = "" if amount == len(judged) else f" in {amount} of {len(judged)}"
            yield f"{verdict}{where}: {text.plain('; '.join(reasons))}"


def _repeatable(judged: tuple[Judgement, ...]) -> str:
    seen = [judgement.repeatable for judgement in judged if judgement.repeatable is not None]
    if not seen:
        return NOT_TESTED if judged else ""
    return "yes" if all(seen) else f"no, in {seen.count(False)} of {len(seen)}"


def _price(price: Price | None, mark: str = "") -> str:
    if price is None:
        return ""
    said = f"{price.ratio:.2f}x{mark}"
    if price.interval:
        low, high = f"{price.interval.low:.2f}", f"{price.interval.high:.2f}"
        return said if low == high else f"{said} [{low}, {high}]"
    low, high = f"{price.smallest:.2f}", f"{price.largest:.2f}"
    return said if low == high else f"{said} ({low} to {high})"


def _kinds(fix: Fix) -> dict[str, list[str]]:
    """What it leaves behind otherwise than it was, by kind."""
    kinds: dict[str, list[str]] = {}
    for name in fix.side_effects:
        if name.endswith(".training"):
            kinds.setdefault("modes", []).append(name.removesuffix(".training"))
        elif name.startswith("torch."):
            kinds.setdefault("cuDNN flag", []).append(name)
        else:
            kinds.setdefault("statistics" if ".running_" in name or ".num_batches" in name else "values", []).append(
                name
            )
    return kinds


def _side_effects(fix: Fix) -> str:
    if not any(fix.gradients.values()):
        return ""
    return ", ".join(_kinds(fix)) or "none seen"


def _left_behind(fix: Fix) -> Iterator[str]:
    for kind, names in _kinds(fix).items():
        told = text.listed(map(text.plain, names))
        yield f"Afterwards the mode of {told} is not as before." if kind == "modes" else f"Leaves {told} changed."
