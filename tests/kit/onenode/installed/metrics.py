"""What a process of edgeshare tells of itself as metrics."""

import http.client
from contextlib import closing

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

ANSWER_S = 10.0


def samples(address: str, port: int) -> list[Sample]:
    """All that it tells; nothing where it does not answer."""
    with closing(http.client.HTTPConnection(address, port, timeout=ANSWER_S)) as connection:
        try:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        except (OSError, http.client.HTTPException):  # A process that is killed may leave half an answer.
            return []
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]
