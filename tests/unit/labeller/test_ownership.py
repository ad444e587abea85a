"""Which labels of a Node are ours, and what is applied so that others' stay."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeshare.contract.errors import Unavailable
from labeller.names import FIELD_MANAGER
from labeller.ownership import NOBODY, Conflict, node_labels, plan

Json = dict[str, Any]


def entry(manager: str, *labels: str, operation: str = "Apply", **fields: str) -> Json:
    """An entry of managedFields, as API servers write it."""
    owned = {".": {}, **{f"f:{label}": {} for label in labels}}
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": owned}},
        **fields,
    }


def node(labels: dict[str, str], *entries: Json) -> Json:
    return {"metadata": {"name": "n1", "uid": "uid-1", "labels": labels, "managedFields": [*entries]}}


MIXED = node(
    {"gpu.model": "Tesla-T4", "edge/tpu.count": "1", "role": "edge"},
    entry("kubelet", "role", operation="Update"),
    entry(FIELD_MANAGER, "gpu.model", "edge/tpu.count"),
)


def test_what_is_wanted_is_applied_and_what_is_not_wanted_any_more_is_not() -> None:
    planned = plan(node_labels(MIXED), {"gpu.model": "Tesla-V100", "gpu.driver": "580"}, complete=True)
    assert planned.labels == {"gpu.model": "Tesla-V100", "gpu.driver": "580"}
    assert planned.before == {"gpu.model": "Tesla-T4", "edge/tpu.count": "1"}
    assert planned.conflicts == ()


def test_another_owners_label_stays_and_the_conflict_names_it_and_the_owner() -> None:
    planned = plan(node_labels(MIXED), {"role": "gpu", "gpu.model": "Tesla-T4"}, complete=True)
    assert planned.labels == {"gpu.model": "Tesla-T4"}
    assert planned.conflicts == (Conflict("role", "gpu", "edge", "'kubelet'"),)
    assert "label role=edge was set by 'kubelet' and stays" in str(planned.conflicts[0])


def test_another_owners_label_of_the_same_value_is_no_conflict() -> None:
    planned = plan(node_labels(MIXED), {"role": "edge"}, complete=True)
    assert (planned.labels, planned.conflicts) == ({"role": "edge"}, ())


def test_label_that_is_ours_and_anothers_goes_to_the_other_when_we_would_change_it() -> None:
    shared = node({"role": "edge"}, entry(FIELD_MANAGER, "role"), entry("somebody", "role"))
    planned = plan(node_labels(shared), {"role": "gpu"}, complete=True)
    assert (planned.labels, len(planned.conflicts)) == ({}, 1)


def test_label_that_nobody_accounts_for_is_not_taken() -> None:
    planned = plan(node_labels(node({"role": "edge"})), {"role": "gpu"}, complete=True)
    assert (planned.labels, planned.conflicts) == ({}, (Conflict("role", "gpu", "edge", NOBODY),))


def test_as_long_as_not_all_is_known_none_of_ours_changes_or_goes_and_absent_ones_come() -> None:
    planned = plan(node_labels(MIXED), {"gpu.model": "Tesla-V100", "gpu.driver": "580"}, complete=False)
    assert planned.labels == {"gpu.model": "Tesla-T4", "edge/tpu.count": "1", "gpu.driver": "580"}


@pytest.mark.parametrize("other", [entry(FIELD_MANAGER, "role", operation="Update"), entry("other", "role")])
def test_only_what_our_manager_applied_is_ours(other: Json) -> None:
    assert node_labels(node({"role": "edge"}, other)).ours == frozenset()


def test_label_of_ours_that_was_deleted_is_applied_anew() -> None:
    deleted = node({}, entry(FIELD_MANAGER, "gpu.model"))
    planned = plan(node_labels(deleted), {"gpu.model": "Tesla-T4"}, complete=True)
    assert (planned.before, planned.labels) == ({}, {"gpu.model": "Tesla-T4"})


def test_owners_name_is_fit_for_a_line() -> None:
    found = node_labels(node({"role": "edge"}, entry("two\nlines\x1b[2J", "role")))
    assert found.others["role"].isprintable()


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {},
        {"metadata": None},
        {"metadata": {"labels": {}}},
        {"metadata": {"uid": 7}},
        {"metadata": {"uid": "u", "labels": []}},
        {"metadata": {"uid": "u", "labels": {"a": None}}},
        {"metadata": {"uid": "u", "managedFields": {}}},
        {"metadata": {"uid": "u", "managedFields": ["x"]}},
        {"metadata": {"uid": "u", "managedFields": [{"manager": "m", "fieldsV1": []}]}},
        {"metadata": {"uid": "u", "managedFields": [{"manager": "m", "fieldsV1": {"f:metadata": {"f:labels": 1}}}]}},
    ],
)
def test_answer_that_is_no_node_is_refused(answer: object) -> None:
    with pytest.raises(Unavailable, match="the API server's answer is no Node"):
        node_labels(answer)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
NAMES = st.sampled_from(["a", "b", "c", "d"])
LABELS = st.dictionaries(NAMES, st.sampled_from(["1", "2"]))
MANAGERS = st.sampled_from([FIELD_MANAGER, "x", "y"])
ENTRIES = st.lists(
    st.builds(
        lambda manager, labels, operation: entry(manager, *labels, operation=operation),
        MANAGERS,
        st.lists(NAMES),
        st.sampled_from(["Apply", "Update"]),
    )
)


@given(JSON, JSON)
def test_managed_fields_of_any_shape_are_read_or_refused(fields: object, labels: object) -> None:
    managed = [{"manager": fields, "operation": "Apply", "fieldsV1": fields}]
    for answer in ({"metadata": {"uid": "u", "labels": labels, "managedFields": managed}}, {"metadata": fields}):
        try:
            read = node_labels(answer)
        except Unavailable:
            continue
        assert read.ours <= read.values.keys()


@given(LABELS, ENTRIES, LABELS, st.booleans())
def test_no_plan_changes_what_another_set(there: dict[str, str], entries: list[Json], wanted: Json, all_: bool) -> None:
    found = node_labels(node(there, *entries))
    planned = plan(found, wanted, all_)
    for label, value in planned.labels.items():
        assert there.get(label, value) == value or (label in found.ours and label not in found.others)
    told = {conflict.label for conflict in planned.conflicts}
    assert wanted.keys() <= planned.labels.keys() | told
    if not all_:
        assert planned.before.items() <= planned.labels.items()
