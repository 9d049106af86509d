"""Files that are whole or absent."""

from __future__ import annotations

import tempfile
from pathlib import Path

from harness.errors import StoreError


def write_whole(path: Path, content: str) -> Path:
    """Write ``content`` so that a reader sees the old file or the new one, never a part; returns ``path``.

    Raises:
        StoreError: it cannot be written; nothing of it is left behind.
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", newline="", dir=path.parent, prefix=f".{path.name}-", delete=False
        ) as stream:
            temporary = Path(stream.name)
            stream.write(content)
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise StoreError(
            f"cannot write {path}: {error.strerror or error}", "Choose a folder that can be written with --store."
        ) from error
    return path
