import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from deviceplugin.units.ledger import Allocation, Ledger, Owner
from tests.kit.properties.examples import examples

UNITS = st.frozensets(st.sampled_from("abcdef"), min_size=1)
IDS = st.sampled_from(["gpu-1", "gpu-2", "gpu-3"])


class LedgerAgainstModel(RuleBasedStateMachine):
    """The ledger, beside a plain dictionary that is searched from end to end."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.model: dict[str, Allocation] = {}

    @rule(allocation_id=IDS, units=UNITS, owned=st.booleans())
    def put(self, allocation_id: str, units: frozenset[str], owned: bool) -> None:
        allocation = Allocation(allocation_id, units, "", Owner("n", "p", "c") if owned else None)
        if any(other.unit_ids == units for key, other in self.model.items() if key != allocation_id):
            with pytest.raises(ValueError, match="holds exactly"):
                self.ledger.put(allocation)
        else:
            self.ledger.put(allocation)
            self.model[allocation_id] = allocation

    @rule(allocation_id=IDS)
    def drop(self, allocation_id: str) -> None:
        self.ledger.drop(allocation_id)
        self.model.pop(allocation_id, None)

    @rule(units=UNITS)
    def look_up(self, units: frozenset[str]) -> None:
        same = [allocation for allocation in self.model.values() if allocation.unit_ids == units]
        assert self.ledger.exactly(units) == (same[0] if same else None)
        touching = {key for key, allocation in self.model.items() if allocation.unit_ids & units}
        assert {allocation.id for allocation in self.ledger.touching(units)} == touching

    @precondition(lambda self: self.model)
    @invariant()
    def holds_what_was_put(self) -> None:
        assert {allocation.id: allocation for allocation in self.ledger} == self.model


TestLedger = LedgerAgainstModel.TestCase
TestLedger.settings = settings(max_examples=examples(50), stateful_step_count=20)
