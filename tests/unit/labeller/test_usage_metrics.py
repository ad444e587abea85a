"""Which reading becomes which metric."""

from prometheus_client.parser import text_string_to_metric_families

from edgeshare.http import prometheus
from labeller.usage.metrics import Tool, families
from labeller.usage.readings import Identity, Reading, of_sample, together
from labeller.usage.tegrastats import Sample

JETSON = Identity("1421919056789", "NVIDIA Jetson Orin Nano")


def samples(*readings: Reading, tools: tuple[Tool, ...] = ()) -> dict[str, float]:
    """As Prometheus' own parser reads the page: each by its name and the labels' values."""
    page = prometheus.exposition(families(readings, tools)).decode()
    return {
        ",".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name.startswith("edgeshare_")
    }


def test_what_is_not_known_has_no_sample() -> None:
    assert samples(Reading(Identity("GPU-1", "Tesla T4", 3))) == {"edgeshare_accelerator_info,GPU-1,3,Tesla T4,": 1}


def test_nothing_is_a_page_too() -> None:
    assert samples() == {}


def test_a_name_that_is_no_name_stays_one_label() -> None:
    odd = Identity('a"b\\c\nd', "é {}")
    assert samples(Reading(odd, load_ratio=0.5))['edgeshare_accelerator_utilization_ratio,a"b\\c\nd,é {}'] == 0.5


def test_every_metric_says_what_it_is_and_has_a_unit_or_none() -> None:
    full = Reading(
        JETSON,
        load_ratio=0.1,
        memory_used_bytes=1,
        memory_total_bytes=2,
        temperature_c=3,
        power_w=4,
        engine_load_ratio={"VIC": 0.5},
        zone_c={"gpu": 6},
        rail_w={"VDD_IN": 7},
    )
    found = {family.name: family for family in families([full], [Tool("tegrastats", True, 1, 2)])}
    assert len(found) == 12
    for name, family in found.items():
        assert family.documentation.endswith(".")
        assert len(family.samples) == 1
        assert name.endswith(
            ("_info", "_ratio", "_bytes", "_celsius", "_watts", "_up", "_tool_starts", "_tool_skipped_lines")
        )


def test_the_rail_that_feeds_the_gpu_is_its_power() -> None:
    rails = {
        "VDD_GPU": {"VDD_IN": 9, "VDD_GPU": 1},
        "VDD_SYS_GPU": {"VDD_SYS_CPU": 9, "VDD_SYS_GPU": 1},
        "POM_5V_GPU": {"POM_5V_IN": 9, "POM_5V_GPU": 1},
        "GPU": {"CPU": 9, "GPU": 1},
        "VDD_CPU_GPU_CV": {"VDD_IN": 9, "VDD_CPU_GPU_CV": 1},
        "VDD_GPU_SOC": {"VDD_CPU_CV": 9, "VDD_GPU_SOC": 1},
    }
    for board, rail_mw in rails.items():
        assert of_sample(Sample(1, 2, rail_mw=rail_mw), JETSON).power_w == 0.001, board
    assert of_sample(Sample(1, 2, rail_mw={"VDD_IN": 9, "CPUGPU": 9}), JETSON).power_w is None


def test_what_tegrastats_says_goes_before_what_nvml_says_of_the_same_gpu() -> None:
    board = Reading(JETSON, memory_total_bytes=8, load_ratio=0.1)
    own = Reading(Identity("GPU-1", "Thor"), load_ratio=0.9, temperature_c=40, power_w=5)
    card = Reading(Identity("GPU-2", "NVIDIA RTX A2000", 1), load_ratio=0.2, memory_total_bytes=6)
    assert together(board, [own, card], JETSON) == [
        Reading(JETSON, memory_total_bytes=8, load_ratio=0.1, temperature_c=40, power_w=5),
        card,
    ]
    assert together(None, [own], JETSON) == [Reading(JETSON, load_ratio=0.9, temperature_c=40, power_w=5)]
    assert together(board, [], JETSON) == [board]
    assert together(None, [], JETSON) == []
    # Elsewhere it is a GPU like others.
    assert together(None, [own, card], None) == [own, card]
