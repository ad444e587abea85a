"""The openb files: read as they are, refused with file and line where they are odd or cut off."""

from pathlib import Path

import pytest

from edgeshare.contract.errors import InvalidRequest
from sharemgr.cluster.state.nodes import Device, Inventory
from sharemgr.cluster.state.request import Ask, Request
from sharemgr.replay.openb import read_nodes, read_pods

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,8000,1024,0,\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"
    "p0,12000,16384,1,1000,,LS\n"
    "p1,6000,12288,1,460,V100M16|V100M32,LS\n"
    "p2,500,1,0,0,T4,BE\n"
    "p3,500,1,8,1000,,BE\n"
)


def file_of(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "file.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_nodes_are_read_each_gpu_with_an_id_of_its_own(tmp_path: Path) -> None:
    gpus = (Device("n0-gpu-0", "P100", 0), Device("n0-gpu-1", "P100", 0))
    assert read_nodes(file_of(tmp_path, NODES)) == [
        Inventory("n0", gpus, 64000, 262144),
        Inventory("n1", (), 8000, 1024),
    ]


def test_pods_are_read_as_units_and_a_spec_binds_only_with_a_gpu(tmp_path: Path) -> None:
    expected = [
        Request((Ask(1, 100),), 12000, 16384),
        Request((Ask(1, 46),), 6000, 12288, frozenset({"V100M16", "V100M32"})),
        Request((), 500, 1),
        Request((Ask(8, 100),), 500, 1),
    ]
    assert read_pods(file_of(tmp_path, PODS)) == expected
    assert read_pods(file_of(tmp_path, "\ufeff" + PODS.replace("\n", "\r\n"))) == expected


@pytest.mark.parametrize("cut", range(len(NODES)))
def test_a_list_of_nodes_that_is_cut_off_anywhere_within_a_line_is_refused(tmp_path: Path, cut: int) -> None:
    path = file_of(tmp_path, NODES[:cut])
    whole_lines = NODES[:cut].count("\n")
    if whole_lines > 1 and NODES[:cut].endswith("\n"):
        assert len(read_nodes(path)) == whole_lines - 1
    else:
        with pytest.raises(InvalidRequest, match=r"^.*file\.csv .*$"):
            read_nodes(path)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("p1,6000,12288,1,460,V100M16|V100M32,LS", "p1,6000,12288,1", "line 3: 4 fields, the first line has 7"),
        ("p1,6000", "p1,six", "line 3: cpu_milli is 'six': expected a whole number"),
        ("p1,6000", "p1,-1", "line 3: cpu_milli is '-1'"),
        ("p1,6000", "p1,1e3", "line 3: cpu_milli is '1e3'"),
        ("p1,6000", "p1,", "line 3: cpu_milli is ''"),
        ("p1,6000", "p1,²", "line 3: cpu_milli is '²'"),
        ("p1,6000", "p1," + "9" * 5000, "line 3: cpu_milli is '9999"),
        ("p1,6000", "p1,1000000001", "from 0 to 1000000000"),
        ("1,460", "1,465", "line 3: gpu_milli is 465: expected whole hundredths"),
        ("1,460", "1,1010", "line 3: gpu_milli is '1010'"),
        ("1,460", "1,0", "line 3: 1 GPUs of 0 thousandths"),
        ("1,460", "2,460", "line 3: 2 GPUs of 460 thousandths"),
        ("1,460", "0,460", "line 3: 0 GPUs of 460 thousandths"),
        ("8,1000", "17,1000", "line 5: num_gpu is '17': expected a whole number from 0 to 16"),
        ("gpu_milli", "gpu_mili", "line 1: expected the columns .*; gpu_milli is missing"),
        ("qos", "name", "line 1: expected the columns"),
        ("p2,500,1,0,0,T4,BE", '"p2,500', "line "),
        ("p3,500,1,8,1000,,BE\n", "p3,500,1,8,1000,,BE", "line 5: the file ends within a line: is it cut off"),
    ],
)
def test_an_odd_line_is_refused_with_its_number(tmp_path: Path, before: str, after: str, said: str) -> None:
    assert before in PODS
    with pytest.raises(InvalidRequest, match=said) as caught:
        read_pods(file_of(tmp_path, PODS.replace(before, after)))
    assert "file.csv" in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("sn,cpu_milli,memory_mib,gpu,model\n", "no node with a GPU"),
        ("sn,cpu_milli,memory_mib,gpu,model\nn,1,1,0,\n", "no node with a GPU"),
        ("sn,cpu_milli,memory_mib,gpu,model\nn,1,1,1,\n", "line 2: the node has GPUs, but no model"),
        ("sn,cpu_milli,memory_mib,gpu,model\nn,1,1,1,T4\nn,1,1,1,T4\n", "line 3: sn is 'n'"),
        ("sn,cpu_milli,memory_mib,gpu,model\n,1,1,1,T4\n", "line 2: sn is ''"),
        (b"sn,cpu_milli\xff\n", "is no text: byte 12"),
        (PODS, "line 1: expected the columns"),
    ],
)
def test_what_is_no_list_of_nodes_is_refused(tmp_path: Path, text: str | bytes, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        read_nodes(file_of(tmp_path, text))


def test_pods_without_a_gpu_and_files_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="no pod that asks for a GPU"):
        read_pods(file_of(tmp_path, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,0,0\n"))
    with pytest.raises(InvalidRequest, match="cannot be read: No such file"):
        read_pods(tmp_path / "none.csv")
