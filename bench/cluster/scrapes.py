"""What a cluster's processes tell of themselves, and /proc of them."""

import urllib.request
from collections import Counter
from collections.abc import Iterable, Mapping

from prometheus_client.parser import text_string_to_metric_families

from bench.host import cpu_seconds
from edgeshare.contract.errors import NoRoom
from tests.kit.apiserver.api_server import ApiServer, done
from tests.kit.processes.daemons import Daemons

SCRAPE_S = 120

Times = Mapping[float, int]
"""Of a histogram: how many took no longer than so many seconds."""


def assigner_metrics(address: str) -> list[str]:
    """The lines of what the assigner tells Prometheus at that `host:port`."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=SCRAPE_S) as answer:
        lines: list[str] = answer.read().decode().splitlines()
    return lines


def verb_times(metrics: Iterable[str]) -> dict[str, Times]:
    """Of each of the assigner's verbs, as it counted."""
    return histograms(metrics, "edgeshare_assigner_verb_seconds", "verb")


def bindings_without_room(metrics: Iterable[str]) -> float:
    """How many pods the assigner could not bind because what filter had found for them was gone."""
    name = "edgeshare_assigner_bindings_failed_total"
    failed = "\n".join(line for line in metrics if line.startswith(name))
    samples = [sample for family in text_string_to_metric_families(f"{failed}\n") for sample in family.samples]
    return sum(sample.value for sample in samples if sample.labels.get("reason") == NoRoom.__name__)


def binding_times(server: ApiServer, before: Times | None = None) -> Times:
    """Of the API server's answers to Bindings, whoever asked, since its start or since these."""
    # It tells of ten thousand other things.
    lines = [line for line in done(server.kubectl("get", "--raw", "/metrics")).stdout.splitlines() if "binding" in line]
    found = histograms(lines, "apiserver_request_duration_seconds", "subresource")
    times = Counter(found.get("binding", {}))
    times.subtract(before or {})
    return times


def histograms(lines: Iterable[str], name: str, label: str) -> dict[str, Times]:
    """The histograms of a name, by a label's values; what other labels tell apart is added up."""
    found: dict[str, Counter[float]] = {}
    of_it = "\n".join(line for line in lines if line.startswith(f"{name}_bucket{{"))
    for family in text_string_to_metric_families(f"{of_it}\n"):
        for sample in family.samples:
            counts = found.setdefault(sample.labels[label], Counter())
            counts[float(sample.labels["le"])] += int(sample.value)
    return {value: counts for value, counts in found.items() if counts[float("inf")]}


def processor_ms(daemons: Daemons, names: Iterable[str]) -> Counter[str]:
    """The processor time that each of these has used until now."""
    return Counter({name: round(1000 * cpu_seconds(daemons.pid(name))) for name in names})
