"""When a device stops being healthy, and when it is healthy again: a function of its state, what was observed, and
the time.

A device has *conditions*, one a reason at most, and is healthy while it has none. What begins one is in ``observe``;
what ends one is in the table RULES. A restart of the plugin keeps the conditions and starts each wait for their end
anew, so it can only make a device come back later.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from deviceplugin.health.state import Condition, DoubleBitError, Look, Moment, State, Xid
from edgeshare.contract.health import APPLICATION_XIDS, HEALTHY, Answer, Health, Reason, Source

Value = TypeVar("Value")

FELL_OFF_BUS_XID = 79

PASSING_XIDS = frozenset(
    {8, 25, 32, 37, 38, 39, 40, 41, 44, 60, 63, 66, 67, 69, 70, 71, 72, 75, 76, 77, 80, 82, 83, 84, 85, 86, 88, 89}
    | {92, 93, 94, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 121}
    | {126, 127, 128, 129, 130, 131, 132, 133, 134, 135, 137, 139, 141, 152, 153, 157, 160, 161}
)
"""XIDs after which the GPU can be used again without a reset: those whose immediate action is IGNORE or RESTART_APP.
Source: NVIDIA, "XID Errors", chapter "Analyzing Xid Errors with the Xid Catalog" (docs.nvidia.com/deploy/xid-errors).
Every other one, and one that the catalogue does not know yet, takes a reset."""

IGNORED_XIDS = APPLICATION_XIDS | {154}
"""XIDs that say nothing of the GPU's health. 154 only tells what another XID asks for, and that it is done (the
catalogue: "informational only")."""


@dataclass(frozen=True)
class Settings:
    """What a node's configuration says of health; see there (health_config.py)."""

    ignored_xids: frozenset[int]
    passing_xid_quiet_ns: int
    temperature_limit_c: int | None
    temperature_margin_c: int
    temperature_calm_ns: int
    pending_remap_counts: bool


@dataclass(frozen=True)
class Rule:
    """What ends a condition: all of it."""

    until: str
    """What ends it, for people."""
    why: str
    needs_reset: bool = False
    looks: int = 2
    """So many good looks in a row: one alone may be chance."""
    quiet: str = ""
    """The setting that says how long these have to last; empty: no longer than they take."""


RULES = {
    Reason.FELL_OFF_BUS: Rule(
        "after a reset of the GPU or a reboot",
        "A GPU that answers again without a reset has lost its state, and the link that failed is the same.",
        needs_reset=True,
    ),
    Reason.XID: Rule(
        "after a reset of the GPU or a reboot",
        "NVIDIA's catalogue asks for it, or does not know the XID: nothing else shows that the fault is gone.",
        needs_reset=True,
    ),
    Reason.UNCORRECTABLE_ECC: Rule(
        "after a reset of the GPU or a reboot",
        "The catalogue (XID 48): a reset clears the error; only then is the bad row replaced.",
        needs_reset=True,
    ),
    Reason.ROW_REMAP_FAILED: Rule(
        "when the driver no longer reports a failed row remapping: usually never, the GPU is to be replaced",
        "The GPU keeps the flag itself; it has no spare rows left.",
    ),
    Reason.NO_ANSWER: Rule(
        "when the driver has answered twice in a row",
        "A driver that is being replaced, or busy, says no for a moment, and yes for a moment too.",
    ),
    Reason.DEVICE_FILE_GONE: Rule(
        "when the file has been there twice in a row",
        "udev and the driver's tools make files anew, and some of them twice.",
    ),
    Reason.ROW_REMAP_PENDING: Rule(
        "after a reset of the GPU, which does the remapping",
        "The GPU itself says when it is done.",
    ),
    Reason.TOO_HOT: Rule(
        "when it has been cooler than the limit by the margin for some time",
        "Without a load it is cool at once, and with one as hot again: it must not come and go.",
        quiet="temperature_calm_ns",
    ),
    Reason.PASSING_XID: Rule(
        "when no other one has come for some time",
        "The catalogue: the GPU can be used again at once; one that goes on failing is kept out all the same.",
        quiet="passing_xid_quiet_ns",
    ),
}


def observe(state: State, seen: Look | Xid | DoubleBitError, settings: Settings, now: Moment) -> State:
    """The state after an observation."""
    match seen:
        case Xid(number) if number in settings.ignored_xids:
            return state
        case Xid(number):
            reason = (
                Reason.FELL_OFF_BUS
                if number == FELL_OFF_BUS_XID
                else Reason.PASSING_XID
                if number in PASSING_XIDS
                else Reason.XID
            )
            return _begun(state, reason, f"XID {number}", Source.DRIVER_EVENT, now)
        case DoubleBitError():
            text = "uncorrectable memory error (double-bit ECC)"
            return _begun(state, Reason.UNCORRECTABLE_ECC, text, Source.DRIVER_EVENT, now)
        case Look():
            return _looked(state, seen, settings, now)


def resumed(state: State) -> State:
    """The state as it is kept over a restart: without waits that were under way."""
    return replace(
        state,
        conditions=tuple(replace(each, good_looks=0, good_since_ns=None) for each in state.conditions),
    )


def health_of(state: State) -> Health:
    """What is to be said of it."""
    if not state.conditions:
        return HEALTHY
    gravest = state.conditions[0]
    return Health(
        healthy=False,
        reason=gravest.reason,
        message="; ".join(condition.detail for condition in state.conditions),
        until=RULES[gravest.reason].until,
        source=gravest.source,
        since_unix_ns=min(condition.since_unix_ns for condition in state.conditions),
    )


def was_reset(state: State, look: Look) -> bool:
    """Whether the device was reset between the last look and this one.

    A boot resets it; a counter that is lower than it was was begun anew, which both do at a reset (NVML: volatile
    counts and energy are "since the driver was last reloaded"); and only a reset does a pending remapping.
    """
    if state.boot_id and state.boot_id != look.boot_id:
        return True
    answer = look.answer
    return answer is not None and (
        _is_lower(answer.energy_mj, state.energy_mj)
        or _is_lower(answer.uncorrected, state.uncorrected)
        or (state.remap_pending is True and answer.remap_pending is False)
    )


def _looked(state: State, look: Look, settings: Settings, now: Moment) -> State:
    reset = was_reset(state, look)
    present = {reason: (detail, source) for reason, detail, source in _present(state, look, reset, settings)}
    conditions = []
    for condition in state.conditions:
        if condition.reason in present:
            del present[condition.reason]
            conditions.append(replace(condition, fresh=False, reset_seen=False, good_looks=0, good_since_ns=None))
        else:
            after = _after_no_sign(condition, look, reset, settings, now)
            if not _is_over(after, settings, now):
                conditions.append(after)
    conditions += [Condition(reason, detail, source, now.unix_ns) for reason, (detail, source) in present.items()]
    return _with_marks(replace(state, conditions=_in_order(conditions)), look, reset)


def _present(state: State, look: Look, reset: bool, settings: Settings) -> Iterator[tuple[Reason, str, Source]]:
    """What is wrong as of this look."""
    # Which file is whose may be another after a reset.
    gone = frozenset() if reset else state.files - look.files
    if gone:
        yield Reason.DEVICE_FILE_GONE, f"{', '.join(sorted(gone))} is gone", Source.FILE_SYSTEM
    if look.lost:
        yield Reason.FELL_OFF_BUS, look.error or "it has left the bus", look.source
    elif look.answer is None:
        yield Reason.NO_ANSWER, look.error or "the driver does not answer for it", look.source
    answer = look.answer or Answer()
    before = 0 if reset else state.uncorrected
    # What was there before the first look is not counted: nobody knows what has been done about it.
    if answer.uncorrected is not None and before is not None and answer.uncorrected > before:
        text = f"{answer.uncorrected - before} uncorrectable memory errors"
        yield Reason.UNCORRECTABLE_ECC, text, look.source
    if answer.remap_failed:
        yield Reason.ROW_REMAP_FAILED, "a row of its memory could not be remapped", look.source
    if answer.remap_pending and settings.pending_remap_counts:
        yield Reason.ROW_REMAP_PENDING, "a row of its memory waits for a reset to be remapped", look.source
    limit_c = settings.temperature_limit_c
    if limit_c is not None and answer.temperature_c is not None:
        hot = any(condition.reason == Reason.TOO_HOT for condition in state.conditions)
        if answer.temperature_c >= (limit_c - settings.temperature_margin_c if hot else limit_c):
            yield Reason.TOO_HOT, f"{answer.temperature_c} °C, the limit is {limit_c}", look.source


def _after_no_sign(condition: Condition, look: Look, reset: bool, settings: Settings, now: Moment) -> Condition:
    """A condition after a look that showed nothing of its cause."""
    counts = reset and not condition.fresh
    condition = replace(condition, fresh=False, reset_seen=condition.reset_seen or counts)
    knows = _could_show(look, condition.reason, settings)
    if not knows or (reset and RULES[condition.reason].needs_reset):
        # Where it takes a reset, good looks count from that on.
        condition = replace(condition, good_looks=0, good_since_ns=None)
    if not knows:
        return condition
    since_ns = now.monotonic_ns if condition.good_since_ns is None else condition.good_since_ns
    return replace(condition, good_looks=condition.good_looks + 1, good_since_ns=since_ns)


def _could_show(look: Look, reason: Reason, settings: Settings) -> bool:
    """Whether the look would have shown the cause: what nobody has looked at is not gone."""
    if reason == Reason.DEVICE_FILE_GONE:
        return True
    if look.answer is None:
        return False
    match reason:
        case Reason.TOO_HOT:
            return look.answer.temperature_c is not None or settings.temperature_limit_c is None
        case Reason.ROW_REMAP_FAILED:
            return look.answer.remap_failed is not None
        case Reason.ROW_REMAP_PENDING:
            return look.answer.remap_pending is not None or not settings.pending_remap_counts
        case _:
            return True


def _is_over(condition: Condition, settings: Settings, now: Moment) -> bool:
    rule = RULES[condition.reason]
    if condition.good_since_ns is None or condition.good_looks < rule.looks:
        return False
    quiet_ns: int = getattr(settings, rule.quiet) if rule.quiet else 0
    return now.monotonic_ns - condition.good_since_ns >= quiet_ns and (condition.reset_seen or not rule.needs_reset)


def _begun(state: State, reason: Reason, detail: str, source: Source, now: Moment) -> State:
    known = {condition.reason: condition for condition in state.conditions}
    # Once more the same: the first one's words stay, and the wait for its end begins anew.
    condition = known.get(reason) or Condition(reason, detail, source, now.unix_ns)
    known[reason] = replace(condition, fresh=True, reset_seen=False, good_looks=0, good_since_ns=None)
    return replace(state, conditions=_in_order(list(known.values())))


def _with_marks(state: State, look: Look, reset: bool) -> State:
    """What the next look is compared with; of what was not said, the last that was."""
    answer = look.answer or Answer()
    return replace(
        state,
        boot_id=look.boot_id,
        energy_mj=_newer(answer.energy_mj, None if reset else state.energy_mj),
        uncorrected=_newer(answer.uncorrected, 0 if reset and state.uncorrected is not None else state.uncorrected),
        remap_pending=_newer(answer.remap_pending, None if reset else state.remap_pending),
        files=look.files if reset else state.files | look.files,
    )


def _in_order(conditions: list[Condition]) -> tuple[Condition, ...]:
    order = list(Reason)
    return tuple(sorted(conditions, key=lambda condition: order.index(condition.reason)))


def _is_lower(now: int | None, before: int | None) -> bool:
    return now is not None and before is not None and now < before


def _newer(now: Value | None, before: Value | None) -> Value | None:
    return before if now is None else now
