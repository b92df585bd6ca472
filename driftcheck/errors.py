"""The one exception that driftcheck raises for what its user can act on."""


class DriftcheckError(Exception):
    """Something the user can mend: the message is one line saying what, where and what to do.

    The command line prints it and exits with code 2. Anything else that escapes is a fault of driftcheck's own.
    """
