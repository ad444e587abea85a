"""One line for each group of tests, from its report in build/junit; fails where a group has none.

Usage: tools/summary.py GROUP...
"""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

REPORTS = Path(__file__).parent.parent / "build/junit"


def line(group: str, report: Path) -> str:
    """What became of a group."""
    if not report.exists():
        return f"{group:<14} has no report: what came before its tests failed, see above"
    total = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    seconds = 0.0
    for suite in ET.parse(report).getroot().iter("testsuite"):
        seconds += float(suite.get("time", 0))
        for name in total:
            total[name] += int(suite.get(name, 0))
    failed = total["failures"] + total["errors"]
    passed = total["tests"] - failed - total["skipped"]
    return f"{group:<14} {passed:>5} passed {failed:>4} failed {total['skipped']:>4} skipped {seconds:>7.0f} s"


def main(groups: list[str]) -> int:
    """Prints the lines."""
    reports = {group: REPORTS / f"{group}.xml" for group in groups}
    print("\n".join(line(group, report) for group, report in reports.items()))
    return 0 if all(report.exists() for report in reports.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
