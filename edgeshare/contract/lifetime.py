"""When an allocation begins, changes and ends: its states, every way from one to another, and the rules by which the
device plugin and the node's manager find out which way it goes. They find out the facts, and act; what follows is
decided here."""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType


class State(Enum):
    """Where an allocation is between not being there yet and not being there any more."""

    ABSENT = "absent"
    """There is none."""
    HANDED_OUT = "handed out"
    """Allocate gave its units to the kubelet; no container was seen to have them. The manager does not know it."""
    OWNED = "owned"
    """The kubelet lists a container with its units; what that one asked for was not read. The manager does not know
    it."""
    SERVED = "served"
    """Whose it is and what was asked for is known. The plugin keeps that before it tells the manager, which serves it
    and keeps it on disk; only then the container starts."""
    ENDING = "ending"
    """The plugin has taken it back, and the manager may still have it."""
    STRANDED = "stranded"
    """The manager keeps it, and cannot serve it: a device is missing."""
    HELD = "held"
    """The manager serves it for as long as a call lasts (``edgeshare run``). It is not on disk, and no plugin knows
    it."""


ABSENT, HANDED_OUT, OWNED, SERVED, ENDING, STRANDED, HELD = State

AT_THE_PLUGIN: Mapping[tuple[State, State], str] = MappingProxyType(
    {
        (ABSENT, HANDED_OUT): "the kubelet asks for units that nobody has",
        (ABSENT, SERVED): "its record was lost, and is made anew of what the manager has",
        (ABSENT, ENDING): "the manager alone has it, and it has ended",
        (HANDED_OUT, OWNED): "the kubelet lists a container with just these units",
        (HANDED_OUT, SERVED): "its container is about to start, and was not seen in the kubelet's list before",
        (HANDED_OUT, ENDING): "nobody took it; or what was handed out with it could not be",
        (OWNED, SERVED): "its container is about to start",
        (OWNED, ENDING): "it has ended before its container started",
        (SERVED, OWNED): "the kubelet lists another container with just these units",
        (SERVED, ENDING): "it has ended",
        (ENDING, ABSENT): "the manager was told, and has it no more",
    }
)
"""From, to → when, as far as the device plugin knows it. What changes within a state is whose it is (``Taking``)."""

AT_THE_MANAGER: Mapping[tuple[State, State], str] = MappingProxyType(
    {
        (ABSENT, SERVED): "it is added",
        (ABSENT, HELD): "a call begins that holds it",
        (SERVED, STRANDED): "the manager starts anew, without one of its devices",
        (SERVED, ABSENT): "it is removed",
        (STRANDED, SERVED): "its device came, or it is added with other devices",
        (STRANDED, ABSENT): "it is removed",
        (HELD, ABSENT): "the call has ended; or it is removed, which ends the call",
    }
)
"""From, to → when, as far as the manager knows it. A manager that ends, ends what is held; the rest is on disk."""

PHASES_OVER = ("Succeeded", "Failed")
"""The phases of a pod none of whose containers can start any more (Kubernetes, "Pod Lifecycle")."""


def state_at_the_plugin(has_owner: bool, has_terms: bool) -> State:
    """The state of an allocation of which the plugin has a record."""
    if not has_owner:
        return HANDED_OUT
    return SERVED if has_terms else OWNED


class Doubt(Enum):
    """Why an allocation may have ended, by what the kubelet says. It says nothing where it has forgotten its own
    checkpoint, or has just started."""

    MISSING = "the kubelet does not list its container with its units"
    SUPERSEDED = "the kubelet lists its container with other units, which another allocation of that container holds"
    UNCLAIMED = "it has no owner, and the kubelet lists nobody with any of its units"
    OFFERED = "the kubelet offers units of it, or hands them out, and does not list them"


def has_ended(doubt: Doubt, *, has_clients: bool, pod_is_over: bool | None) -> bool:
    """Whether an allocation in doubt has ended. It lasts as long as its pod, or a client of it: the processes of a pod
    that was deleted by force can outlive it.

    ``pod_is_over`` is about any pod that may have it; None where nobody can say. Then it has ended where the kubelet
    has other use for it, as at an admission all earlier ones are complete."""
    if has_clients:
        return False
    match doubt:
        case Doubt.SUPERSEDED:
            return True
        case Doubt.OFFERED:
            return pod_is_over is not False
        case Doubt.MISSING | Doubt.UNCLAIMED:
            return pod_is_over is True


def lasts_unasked(has_owner: bool, whose_is_listed: bool) -> bool:
    """Whether an allocation of which the kubelet offers units counts as lasting while the API server cannot be asked:
    all do whose container is known, but those of plain init containers that did not start yet (``whose_is_listed`` is
    False for these, and where nobody is known): their units go on to others of their pod."""
    return has_owner or whose_is_listed


def goes_on(*, is_beside: bool, is_same_container: bool, is_listed: bool, is_idle: bool) -> bool:
    """Whether units of an allocation that lasts are an applicant's to have: those of a plain init container, which the
    kubelet never lists, go on to later containers beside it in its pod; and a container that is admitted anew has what
    it had, unless it still runs."""
    return is_beside and (not is_listed or (is_same_container and is_idle))


class Taking(Enum):
    """How an applicant gets units of which an allocation has been made before."""

    AGAIN = "it has them already: a kubelet that forgot whom it gave them starts the container again"
    OVER = "from whoever had them before: an init container, or one that never came to a start"
    NEW = "as a new allocation; the one before has ended"


def taking(*, is_same_container: bool, has_owner: bool, may_be_of_one_pod: bool) -> Taking:
    """How an applicant takes an allocation that has exactly the units that it gets, and that does not last or goes on
    to it."""
    if is_same_container:
        return Taking.AGAIN
    return Taking.OVER if may_be_of_one_pod and not has_owner else Taking.NEW
