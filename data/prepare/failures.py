"""How the tool ends when it cannot go on."""


class BadInput(Exception):
    """What the user gave is wrong: exit code 2. The message names file and line where there are."""


class Interrupted(BaseException):
    """A signal asked the tool to end; outputs are abandoned on the way out."""

    def __init__(self, number):
        super().__init__(number)
        self.number = number
