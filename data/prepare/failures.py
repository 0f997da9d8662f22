"""How the tool ends when it cannot go on."""


class BadInput(Exception):
    """What the user gave is wrong: exit code 2. The message names file and line where there are."""


class Interrupted(BaseException):
    """A signal asked the tool to end; what is not in its place yet is abandoned on the way out.
    `outcome` says what there is."""

    def __init__(self, number, outcome):
        super().__init__(number, outcome)
        self.number = number
        self.outcome = outcome
