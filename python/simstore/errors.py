"""What simstore raises beside Python's own exceptions.

Errors of the operating system are `OSError` and its kinds (`FileNotFoundError`, `PermissionError`, ...) with `errno` and `filename`;
arguments that make no sense are `ValueError` and `TypeError`.
"""


class Error(Exception):
    """simstore could not do what was asked: the base of its own exceptions.

    Attributes
    ----------
    code : str
        What kind of error it is, as the command line and the library name it: "refused", "locked", ...
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message, code)
        self.code = code

    def __str__(self) -> str:
        return str(self.args[0])


class SimstoreWarning(UserWarning):
    """Something was skipped, guessed or replaced, or may not be as it was meant."""


class LockedError(Error):
    """Another process, or another `Store` of this one, is writing to the store."""


class CorruptError(Error):
    """The bytes of a store are not what its format asks for.

    Attributes
    ----------
    path : str
        The damaged file.
    offset : int
        Where the damage is, in bytes from the start of the file.
    """

    def __init__(self, message: str, code: str, path: str, offset: int) -> None:
        super().__init__(message, code)
        self.args = (message, code, path, offset)
        self.path = path
        self.offset = offset


class BadInputError(Error, ValueError):
    """An input file, or a line of it, cannot be read as what it should be.

    Attributes
    ----------
    path : str
        The file; "-" for what was handed over in memory.
    line : int
        The line or record, from 1; 0 for the file as a whole.
    """

    def __init__(self, message: str, code: str, path: str, line: int) -> None:
        super().__init__(message, code)
        self.args = (message, code, path, line)
        self.path = path
        self.line = line


class NotAStoreError(Error, ValueError):
    """The path holds something else than a store, or a store of another version."""


class InternalError(Error):
    """A bug of simstore: something that it relies on does not hold, whatever the data and the arguments are. Please report it."""
