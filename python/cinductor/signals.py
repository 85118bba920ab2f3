"""The root of what capture tells itself by raising."""


class Signal(BaseException):
    """Goes through the user's frames, whose handlers see none of it, and never leaves the package."""
