"""One line for each group of tests, from its report in build/junit; fails where a group has none.

A test of figures that misses a target which was missed when it was recorded, too, ends as xfailed. JUnit counts it as
skipped; here it is told apart from what was not run.

Usage: tools/summary.py GROUP...
"""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

REPORTS = Path(__file__).parent.parent / "build/junit"
XFAILED = "pytest.xfail"
"""The type that pytest gives its skipped tests which are that."""


def line(group: str, report: Path) -> str:
    """What became of a group."""
    if not report.exists():
        return f"{group:<14} has no report: what came before its tests failed, see above"
    total = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    seconds, missed = 0.0, 0
    for suite in ET.parse(report).getroot().iter("testsuite"):
        seconds += float(suite.get("time", 0))
        missed += sum(skipped.get("type") == XFAILED for skipped in suite.iter("skipped"))
        for name in total:
            total[name] += int(suite.get(name, 0))
    failed = total["failures"] + total["errors"]
    passed, skipped = total["tests"] - failed - total["skipped"], total["skipped"] - missed
    return (
        f"{group:<14} {passed:>5} passed {failed:>4} failed {missed:>4} missed targets {skipped:>4} skipped"
        f" {seconds:>7.0f} s"
    )


def main(groups: list[str]) -> int:
    """Prints the lines."""
    reports = {group: REPORTS / f"{group}.xml" for group in groups}
    print("\n".join(line(group, report) for group, report in reports.items()))
    return 0 if all(report.exists() for report in reports.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
