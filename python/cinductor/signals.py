"""The root of what capture tells itself by raising."""


class Signal(BaseException):
    """Goes through the user's frames, whose handlers see none of it, and never leaves the package."""


class Replan(Signal):
    """A capture is given up for one that assumes less. assumption: a field of `Assumptions`
    (`capture/session.py`), to be given up; place: file and line, where it is about one.
    """

    def __init__(self, assumption: str, why: str, place: tuple[str, int] | None = None) -> None:
        super().__init__(why)
        self.assumption, self.place = assumption, place
