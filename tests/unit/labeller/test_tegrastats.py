"""What the lines of each release of tegrastats say. The forms are those of recorded lines, whose places the parser's
docstring names; the numbers are these tests' own."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from labeller.usage.tegrastats import LINE_BYTES_MAX, Sample, parse

LINES = {
    "Android": (
        b"E/TegraStats( 411): RAM 311/491MB (lfb 12x1MB) Carveout 9/12MB (lfb 0kB) GART 21/32MB (lfb 4MB) "
        b"IRAM 24/256kB (lfb 128kb) | DFS(%@MHz): cpu [58%,41%]@816 avp 19%@102 vde 37%@219 emc 26%@331",
        Sample(311, 491, None, {"AVP": 19, "VDE": 37, "EMC": 26}),
    ),
    "TK1, R21": (
        b"RAM 655/1892MB (lfb 141x4MB) SWAP 0/2048MB (cached 0MB) cpu [22%,9%,off,off]@1092 EMC 4%@792 AVP 2%@81 "
        b"VDE 120 GR3D 31%@180 EDP limit 0",
        Sample(655, 1892, 31, {"EMC": 4, "AVP": 2}),
    ),
    "TX1, R24": (
        b"RAM 402/3854MB (lfb 688x4MB) SWAP 0/0MB (cached 0MB) cpu [3%,1%,0%,2%]@1734 EMC 6%@1600 AVP 7%@115 VDE 0 "
        b"GR3D 44%@538 EDP limit 1734",
        Sample(402, 3854, 44, {"EMC": 6, "AVP": 7}),
    ),
    "TX1, R28, encoding": (
        b"RAM 2301/3983MB (lfb 19x4MB) cpu [41%,44%,30%,off]@1734 EMC 51%@1600 APE 25 NVDEC 716 MSENC 716 GR3D 0%@76",
        Sample(2301, 3983, 0, {"EMC": 51}),
    ),
    "TX1, R32": (
        b"RAM 1201/3983MB (lfb 118x4MB) IRAM 0/252kB(lfb 252kB) CPU [2%@102,5%@102,0%@102,1%@102] EMC_FREQ 8%@408 "
        b"GR3D_FREQ 12%@76 APE 25 AO@43.5C CPU@38.5C GPU@36.5C PLL@37C Tdiode@41.75C PMIC@100C Tboard@41C "
        b"thermal@38.2C VDD_IN 2611/2702 VDD_CPU 91/171 VDD_GPU 38/21",
        Sample(
            1201,
            3983,
            12,
            {"EMC": 8},
            {"ao": 43.5, "cpu": 38.5, "gpu": 36.5, "pll": 37, "tdiode": 41.75, "tboard": 41, "thermal": 38.2},
            {"VDD_IN": 2611, "VDD_CPU": 91, "VDD_GPU": 38},
        ),
    ),
    "TX2, R28": (
        b"RAM 2411/7846MB (lfb 2x1MB) CPU [11%@960,off,off,7%@959,3%@960,0%@960] EMC_FREQ 11%@665 GR3D_FREQ 61%@140 "
        b"APE 150 MTS fg 1% bg 3% BCPU@42C MCPU@42C GPU@40C PLL@42C Tboard@36C Tdiode@38.25C PMIC@100C thermal@41.1C "
        b"VDD_IN 3211/3190 VDD_CPU 541/530 VDD_GPU 391/388 VDD_SOC 531/536 VDD_WIFI 0/0 VDD_DDR 571/575",
        Sample(
            2411,
            7846,
            61,
            {"EMC": 11},
            {"bcpu": 42, "mcpu": 42, "gpu": 40, "pll": 42, "tboard": 36, "tdiode": 38.25, "thermal": 41.1},
            {"VDD_IN": 3211, "VDD_CPU": 541, "VDD_GPU": 391, "VDD_SOC": 531, "VDD_WIFI": 0, "VDD_DDR": 571},
        ),
    ),
    "TX2, R32": (
        b"RAM 3301/7859MB (lfb 6x4MB) SWAP 1601/12122MB (cached 177MB) CPU [41%@1421,50%@2031] EMC_FREQ 2%@1866 "
        b"GR3D_FREQ 5%@114 APE 150 MTS fg 1% bg 1% PLL@43.5C GPU@39C PMIC@50C VDD_SYS_GPU 183/181 VDD_4V0_WIFI 0/0 "
        b"VDD_IN 5301/5299",
        Sample(
            3301,
            7859,
            5,
            {"EMC": 2},
            {"pll": 43.5, "gpu": 39},
            {"VDD_SYS_GPU": 183, "VDD_4V0_WIFI": 0, "VDD_IN": 5301},
        ),
    ),
    "Nano, R32, without root": (
        b"RAM 701/3964MB (lfb 601x4MB) SWAP 1/1982MB (cached 0MB) CPU [3%@102,2%@102,off,off] EMC_FREQ 0% GR3D_FREQ 9% "
        b"PLL@38.5C CPU@41C PMIC@100C GPU@40C AO@45.5C thermal@40.5C POM_5V_IN 911/940 POM_5V_GPU 0/0 POM_5V_CPU 124/1",
        Sample(
            701,
            3964,
            9,
            {"EMC": 0},
            {"pll": 38.5, "cpu": 41, "gpu": 40, "ao": 45.5, "thermal": 40.5},
            {"POM_5V_IN": 911, "POM_5V_GPU": 0, "POM_5V_CPU": 124},
        ),
    ),
    "Nano, R32": (
        b"RAM 1911/3964MB (lfb 3x2MB) SWAP 188/1982MB (cached 5MB) IRAM 0/252kB(lfb 252kB) CPU [6%@1224,4%@1224] "
        b"EMC_FREQ 1%@1600 GR3D_FREQ 99%@921 NVENC 716 APE 25 GPU@41.5C POM_5V_IN 4801/4622 POM_5V_GPU 1701/0",
        Sample(1911, 3964, 99, {"EMC": 1}, {"gpu": 41.5}, {"POM_5V_IN": 4801, "POM_5V_GPU": 1701}),
    ),
    "AGX Xavier, R32": (
        b"RAM 10772/31919MB (lfb 4111x4MB) SWAP 0/15959MB (cached 0MB) CPU [18%@1190,off] EMC_FREQ 54%@2133 "
        b"GR3D_FREQ 93%@1377 APE 150 MTS fg 0% bg 9% AO@47.5C GPU@54C AUX@46.5C CPU@48.5C Tboard@46C GPU 18302/18511 "
        b"CPU 2311/2333 SOC 4611/4602 CV 0/0 VDDRQ 2901/2911 SYS5V 4641/4622",
        Sample(
            10772,
            31919,
            93,
            {"EMC": 54},
            {"ao": 47.5, "gpu": 54, "aux": 46.5, "cpu": 48.5, "tboard": 46},
            {"GPU": 18302, "CPU": 2311, "SOC": 4611, "CV": 0, "VDDRQ": 2901, "SYS5V": 4641},
        ),
    ),
    "AGX Xavier, R35": (
        b"RAM 3411/31011MB (lfb 88x4MB) CPU [2%@1190] EMC_FREQ 0% GR3D_FREQ 3% GPU@31.5C GPU 310mW/302mW "
        b"CPU 465mW/470mW SYS5V 2761mW/2760mW",
        Sample(3411, 31011, 3, {"EMC": 0}, {"gpu": 31.5}, {"GPU": 310, "CPU": 465, "SYS5V": 2761}),
    ),
    "Xavier NX, R32": (
        b"RAM 5211/7771MB (lfb 6x4MB) SWAP 981/20269MB (cached 277MB) CPU [46%@1420,off] EMC_FREQ 3%@1600 "
        b"GR3D_FREQ 17%@1109 NVENC 601 APE 150 MTS fg 1% bg 8% AO@30C GPU@32C AUX@30.5C VDD_IN 6122/5499 "
        b"VDD_CPU_GPU_CV 2699/2110 VDD_SOC 1069/1044",
        Sample(
            5211,
            7771,
            17,
            {"EMC": 3},
            {"ao": 30, "gpu": 32, "aux": 30.5},
            {"VDD_IN": 6122, "VDD_CPU_GPU_CV": 2699, "VDD_SOC": 1069},
        ),
    ),
    "AGX Orin, R34 and R35.1": (
        b"04-24-2023 00:01:25 RAM 1301/62795MB (lfb 15111x4MB) SWAP 0/31398MB (cached 0MB) CPU [1%@729,0%@729] "
        b"EMC_FREQ 1%@2133 GR3D_FREQ 6%@305 GR3D2_FREQ 6%@305 NVJPG1 729 VIC_FREQ 729 APE 174 CV0@-256C CPU@42.5C "
        b"Tboard@32.5C SOC2@39.3C GPU@-256C tj@42.6C VDD_GPU_SOC 2401mW/2399mW VDD_CPU_CV 402mW/400mW "
        b"VIN_SYS_5V0 4041mW/4032mW NC 0mW/0mW VDDQ_VDD2_1V8AO 303mW/301mW NC 0mW/0mW",
        Sample(
            1301,
            62795,
            6,
            {"EMC": 1},
            {"cpu": 42.5, "tboard": 32.5, "soc2": 39.3, "tj": 42.6},
            {"VDD_GPU_SOC": 2401, "VDD_CPU_CV": 402, "VIN_SYS_5V0": 4041, "VDDQ_VDD2_1V8AO": 303},
        ),
    ),
    "Orin NX, R35": (
        b"11-29-2025 10:14:03 RAM 3151/15389MB (lfb 11x4MB) SWAP 0/7694MB (cached 0MB) CPU [40%@1510,off,off] "
        b"EMC_FREQ 17%@2133 GR3D_FREQ 62%@[624] NVDEC off NVJPG off VIC off OFA off APE 174 CPU@48.9C GPU@47.1C "
        b"VDD_IN 9812mW/8700mW VDD_CPU_GPU_CV 3311mW/3020mW VDD_SOC 1801mW/1777mW",
        Sample(
            3151,
            15389,
            62,
            {"EMC": 17, "NVDEC": 0, "NVJPG": 0, "VIC": 0, "OFA": 0},
            {"cpu": 48.9, "gpu": 47.1},
            {"VDD_IN": 9812, "VDD_CPU_GPU_CV": 3311, "VDD_SOC": 1801},
        ),
    ),
    "Orin Nano, R36, without root": (
        b"08-10-2026 21:39:52 RAM 2502/7620MB (lfb 2x4MB) SWAP 24/3810MB (cached 0MB) CPU [9%@729,8%@729] GR3D_FREQ 4% "
        b"cpu@51.3C soc2@51C gpu@51.5C tj@51.8C VDD_IN 4801mW/6101mW VDD_CPU_GPU_CV 1281mW/2301mW VDD_SOC 1241mW/139mW",
        Sample(
            2502,
            7620,
            4,
            {},
            {"cpu": 51.3, "soc2": 51, "gpu": 51.5, "tj": 51.8},
            {"VDD_IN": 4801, "VDD_CPU_GPU_CV": 1281, "VDD_SOC": 1241},
        ),
    ),
    "AGX Orin, R36": (
        b"05-09-2026 18:42:09 RAM 18111/62841MB (lfb 461x4MB) SWAP 81/31420MB (cached 0MB) CPU [15%@2188,5%@2112] "
        b"EMC_FREQ 4%@2133 GR3D_FREQ 8%@[611,0] NVENC 77%@166 NVDEC off VIC 35%@115 NVDLA0 11%@1600 NVDLA1 OFF "
        b"PVA0_FREQ [20%,40%]@115 APE 174 cpu@52.6C tj@52.6C VDD_GPU_SOC 2422mW/2412mW VIN_SYS_5V0 4701mW/4707mW",
        Sample(
            18111,
            62841,
            8,
            {"EMC": 4, "NVENC": 77, "NVDEC": 0, "VIC": 35, "NVDLA0": 11, "NVDLA1": 0, "PVA0": 30},
            {"cpu": 52.6, "tj": 52.6},
            {"VDD_GPU_SOC": 2422, "VIN_SYS_5V0": 4701},
        ),
    ),
    "Thor, R38": (
        b"05-17-2026 10:00:35 RAM 4301/125773MB (lfb 28x4MB) CPU [2%@972,0%@972] EMC_FREQ 1%@665 "
        b"GR3D_FREQ @[314,314,314] NVENC0_FREQ @314 NVJPG0_FREQ @314 VIC off OFA_FREQ @315 PVA0_FREQ off APE 300 "
        b"cpu@37.5C tj@38.9C soc012@37.4C gpu@38.8C VDD_GPU -392mW/-301mW VDD_CPU_SOC_MSS 5801mW/5mW VIN 19701mW/19mW",
        Sample(
            4301,
            125773,
            None,
            {"EMC": 1, "VIC": 0, "PVA0": 0},
            {"cpu": 37.5, "tj": 38.9, "soc012": 37.4, "gpu": 38.8},
            {"VDD_GPU": -392, "VDD_CPU_SOC_MSS": 5801, "VIN": 19701},
        ),
    ),
    "Thor, R38, without root": (
        b"01-20-2026 22:46:23 RAM 17801/125772MB (lfb 77x4MB) CPU [0%@972,1%@1566] cpu@30.5C tj@31.2C VDD_GPU 0mW/0mW "
        b"VIN 16811mW/16802mW",
        Sample(17801, 125772, None, {}, {"cpu": 30.5, "tj": 31.2}, {"VDD_GPU": 0, "VIN": 16811}),
    ),
    "Thor, R39": (
        b"08-08-2026 21:00:40 RAM 8311/125749MB (lfb 30x4MB) CPU [89%@2601,off] EMC_FREQ 33%@4266 "
        b"GR3D_FREQ 88%@[1574,1574,1574] NVENC0_FREQ @1691 VIC off gpu@57.1C/66.6C tj@66.5C/66.6C "
        b"VDD_GPU 37911mW/8661mW/37939mW VIN 124401mW/36487mW/124486mW",
        Sample(
            8311,
            125749,
            88,
            {"EMC": 33, "VIC": 0},
            {"gpu": 57.1, "tj": 66.5},
            {"VDD_GPU": 37911, "VIN": 124401},
        ),
    ),
    "Thor, R39, clocks alone": (
        b"08-08-2026 20:58:24 RAM 3411/125749MB (lfb 119x4MB) CPU [0%,6%,off]@2601 EMC_FREQ @4266 "
        b"GR3D_FREQ @[1574,1574,1574] gpu@51.2C/51.2C VDD_GPU 6301mW",
        Sample(3411, 125749, None, {}, {"gpu": 51.2}, {"VDD_GPU": 6301}),
    ),
    "AGX Orin, R39": (
        b"07-25-2026 09:08:29 RAM 20611/62817MB (lfb 1x2MB) CPU [22%@2201,10%@2201] EMC_FREQ 2%@3199 "
        b"GR3D_FREQ 21%@[1300,1300] NVENC0 off NVDEC0 off APE 174 cpu@52.9C/52.9C",
        Sample(20611, 62817, 21, {"EMC": 2, "NVENC0": 0, "NVDEC0": 0}, {"cpu": 52.9}),
    ),
}


@pytest.mark.parametrize("release", LINES)
def test_a_line_of_each_release_is_read(release: str) -> None:
    line, expected = LINES[release]
    assert parse(line) == expected


REFUSED = {
    "nothing": b"",
    "no memory": b"GR3D_FREQ 12%@305 GPU@31C",
    "help": b"Usage: tegrastats [-option]",
    "more in use than there is": b"RAM 200/100MB (lfb 1x4MB)",
    "memory of another unit": b"RAM 200/400kB (lfb 1x4kB)",
    "cut off in the memory": b"RAM 200/300",
    "too long": b"RAM 200/400MB " + b"x" * LINE_BYTES_MAX,
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_is_no_line_of_it_is_refused(why: str) -> None:
    assert parse(REFUSED[why]) is None


def test_what_cannot_be_is_left_out() -> None:
    line = b"RAM 1/2MB GR3D_FREQ 101% NVENC 999%@1 PVA0_FREQ [101%,5%]@1 gpu@1e3C cpu@9999C VDD_IN 12345678/1"
    assert parse(line) == Sample(1, 2)


def test_of_what_is_there_twice_the_first_counts() -> None:
    line = b"RAM 1/2MB GR3D_FREQ 3% GR3D_FREQ 4% GPU@5C gpu@6C VDD_IN 7/7 VDD_IN 8/8"
    assert parse(line) == Sample(1, 2, 3, {}, {"gpu": 5}, {"VDD_IN": 7})


@pytest.mark.parametrize("release", LINES)
def test_a_line_that_is_cut_off_says_less_and_nothing_else(release: str) -> None:
    line, whole = LINES[release]
    for cut in filter(None, (parse(line[:length]) for length in range(len(line)))):
        assert (cut.memory_used_mib, cut.memory_total_mib) == (whole.memory_used_mib, whole.memory_total_mib)
        assert cut.gpu_load_percent in (None, whole.gpu_load_percent)
        assert cut.engine_load_percent.items() <= whole.engine_load_percent.items()
        assert cut.temperature_c.items() <= whole.temperature_c.items()
        assert cut.rail_mw.items() <= whole.rail_mw.items()


WORDS = st.sampled_from(
    sorted(
        {word for line, _ in LINES.values() for word in line.split(b" ")} | {b"[", b"]@", b"%", b"@C", b"/", b"\xff"}
    )
)


@example(b"RAM 1/2MB % 3/4 \xff@5C \xff 6% [ off")
@given(st.one_of(st.binary(max_size=300), st.lists(WORDS, max_size=60).map(b" ".join)))
def test_whatever_comes_every_reading_is_one_that_can_be(line: bytes) -> None:
    sample = parse(line)
    if sample is None:
        return
    assert 0 <= sample.memory_used_mib <= sample.memory_total_mib
    for load in (sample.gpu_load_percent or 0, *sample.engine_load_percent.values()):
        assert 0 <= load <= 100
    assert all(-256 < celsius < 1000 for celsius in sample.temperature_c.values())
    for name in (*sample.engine_load_percent, *sample.temperature_c, *sample.rail_mw):
        assert name.isascii()
        assert name.replace("-", "_").isidentifier()
