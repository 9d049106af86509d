"""A few of the malformed inputs, given to the real command as a shell would."""

from __future__ import annotations

from pathlib import Path

import malformed
import pytest
from command import assert_sentence_and_advice, harness

SAMPLE = {
    "a tag of Python in a matrix": (("plan", "m.yaml"), "m.yaml", malformed.YAML["a tag of Python"]),
    "more than a matrix": (
        ("run", "matrix", "m.yaml"),
        "keys and values",
        malformed.YAML["too many inclusions"][:400_000],
    ),
    "bytes for an axis": (("plan", "quick", "-a", malformed.BYTES), "axis", ""),
    "bytes for a run": (("report", malformed.BYTES), "no runs", ""),
    "a run above the store": (("report", "../../etc"), "no runs", ""),
    "an empty file of expectations": (("check", "--expected", ""), "it is empty", ""),
    "an address that is none": (("run", "matrix", "--tracking-uri", "ftp://u:secret@host"), "ftp", ""),
}


@pytest.mark.parametrize("case", SAMPLE)
def test_what_makes_no_sense_is_a_sentence(tmp_path: Path, case: str) -> None:
    words, hint, content = SAMPLE[case]
    (tmp_path / "m.yaml").write_text(str(content))
    end = harness(*words, cwd=tmp_path)
    assert (end.code, end.out) == (2, "")
    assert_sentence_and_advice(end.err, hint)
    assert "secret" not in end.err
    assert "\x1b" not in end.err
    assert [path.name for path in tmp_path.iterdir()] == ["m.yaml"], "nothing is made of it"
