"""What can go wrong, told apart by who is to blame."""


class EdgeshareError(Exception):
    """Anything that edgeshare itself raises on purpose. Its text is one line: what, where, and what to do."""


class InvalidRequest(EdgeshareError):
    """The caller asked for something that can never be granted: a wrong percent, an unknown field, a bad name."""


class NotFound(EdgeshareError):
    """The caller named a device or an allocation that is not there."""


class NoRoom(EdgeshareError):
    """The request is valid, but the device has not as many units, or not as much memory, left."""


class AlreadyExists(EdgeshareError):
    """The name is in use for something else."""


class Unavailable(EdgeshareError):
    """A part that is needed is not there now: a driver, a manager, a kubelet, an API server."""


class Unauthenticated(EdgeshareError):
    """Nobody knows who the caller is: no token, or none that holds."""


class Forbidden(EdgeshareError):
    """The caller is known, and has no right to what was asked for."""


class NoDriver(Unavailable):
    """A machine without a driver: normal on a machine without such hardware, and not the same as a broken one."""
