"""The exceptions of simstore.

Errors of the operating system are `OSError` and its subclasses (`FileNotFoundError`, `PermissionError`, ...) with `errno` and `filename`.
Invalid arguments are `ValueError` and `TypeError`.
"""


class Error(Exception):
    """Base class of simstore's exceptions: a call failed.

    Attributes
    ----------
    code : str
        Kind of error, with the name that the Rust library gives it: "refused", "locked", ...
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message, code)
        self.code = code

    def __str__(self) -> str:
        return str(self.args[0])


class SimstoreWarning(UserWarning):
    """Something was skipped, guessed or replaced, or may be a mistake."""


class LockedError(Error):
    """Another process, or another `Store` of this process, is writing to the store."""


class CorruptError(Error):
    """A file of a store is damaged.

    Attributes
    ----------
    path : str
        Path of the damaged file.
    offset : int
        Offset of the damage from the start of the file, in bytes.
    """

    def __init__(self, message: str, code: str, path: str, offset: int) -> None:
        super().__init__(message, code)
        self.args = (message, code, path, offset)
        self.path = path
        self.offset = offset


class BadInputError(Error, ValueError):
    """An input file, or a line of it, is invalid.

    Attributes
    ----------
    path : str
        Path of the file; "-" for data in memory.
    line : int
        Number of the line or record, from 1; 0 if the error concerns the whole file.
    """

    def __init__(self, message: str, code: str, path: str, line: int) -> None:
        super().__init__(message, code)
        self.args = (message, code, path, line)
        self.path = path
        self.line = line


class NotAStoreError(Error, ValueError):
    """The path is not a store, or is a store of another version."""


class InternalError(Error):
    """A bug in simstore, independent of the data and the arguments. Please report it."""
