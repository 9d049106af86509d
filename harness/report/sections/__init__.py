"""The sections of ``report.md``: functions from ``Evidence`` to markdown, empty where there is nothing to say."""
