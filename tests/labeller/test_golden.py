"""The labels of machines of many kinds, in full. They lie in files: ``pytest tests/labeller --record-labels`` writes
these anew, and what has changed then is to be looked at."""

from pathlib import Path

import pytest
import yaml

from tests.kit.labeller.labelling import invalid, labels_found
from tests.kit.labeller.machines import JETSON_MACHINES, MACHINES

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_has_the_labels_on_record(tmp_path: Path, name: str, request: pytest.FixtureRequest) -> None:
    labels = labels_found(tmp_path, name)
    record = GOLDEN / ("jetsons" if name in JETSON_MACHINES else "others") / f"{name}.yaml"
    if request.config.getoption("--record-labels"):
        record.write_text(yaml.safe_dump({"labels": labels}))
    assert {"labels": labels} == yaml.safe_load(record.read_text())
    assert invalid(labels) == []


def test_no_record_is_left_of_a_machine_that_is_not_there() -> None:
    assert sorted(path.stem for path in GOLDEN.rglob("*.yaml")) == sorted(MACHINES)
