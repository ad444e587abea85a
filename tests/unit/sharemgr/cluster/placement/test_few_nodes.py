"""A node by itself is judged as among many: the whole of it is held in test_node_kinds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sharemgr.cluster.placement.few_nodes import GPUS_MAX, _sum


@given(
    st.integers(1, GPUS_MAX).flatmap(
        lambda count: st.lists(st.lists(st.floats(0, 800), min_size=count, max_size=count), min_size=1)
    )
)
def test_numbers_are_added_up_in_the_order_of_the_arrays(rows: list[list[float]]) -> None:
    assert [_sum(row) for row in rows] == np.array(rows).sum(axis=1).tolist()
