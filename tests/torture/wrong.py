"""What torture brings to light."""


class WrongError(Exception):
    """A promise was broken."""
