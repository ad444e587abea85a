from pathlib import Path

import pytest

from deviceplugin.config import Config, NodeConfig, Pick
from deviceplugin.live_config import ChosenName, Settings
from edgeshare.contract.errors import InvalidRequest, NotFound

TEXT = """\
rescan_s: 7
exclude: [{index: 3}]
configs:
  edge: {exclude: [], compare_s: 1}
  lab: {exclude: [{model: Tesla T4}]}
"""


def settings(tmp_path: Path, text: str = TEXT) -> Settings:
    path = tmp_path / "plugin.yaml"
    path.write_text(text)
    return Settings(path)


def test_no_file_is_the_defaults() -> None:
    assert Settings(None).now == NodeConfig()


def test_a_named_config_goes_before_the_top_level_with_the_keys_that_it_has(tmp_path: Path) -> None:
    file = settings(tmp_path).file
    assert file.for_node("default") == NodeConfig(rescan_s=7, exclude=(Pick(index=3),))
    # An empty list is a key that it has.
    assert file.for_node("edge") == NodeConfig(rescan_s=7, compare_s=1)
    assert file.for_node("lab") == NodeConfig(rescan_s=7, exclude=(Pick(model="Tesla T4"),))


def test_one_named_default_is_for_nodes_without_a_label(tmp_path: Path) -> None:
    assert settings(tmp_path, "rescan_s: 7\nconfigs: {default: {rescan_s: 8}}\n").now.rescan_s == 8


def test_a_key_that_is_read_once_is_refused_in_a_named_config(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"unknown key 'configs\.edge\.kubeconfig'"):
        settings(tmp_path, "configs: {edge: {kubeconfig: /x}}\n")


def test_how_containers_get_their_devices_differs_by_node_and_where_cdi_is_written_does_not(tmp_path: Path) -> None:
    now = settings(tmp_path, "configs: {lab: {injection: {devices: cdi}}}\ncdi_dir: /etc/cdi\n")
    assert now.now.injection.devices == "device-nodes"
    now.choose("lab")
    assert now.now.injection.devices == "cdi"
    with pytest.raises(InvalidRequest, match=r"unknown key 'configs\.lab\.cdi_dir'"):
        settings(tmp_path, "configs: {lab: {cdi_dir: /etc/cdi}}\n")
    with pytest.raises(InvalidRequest, match=r"cdi_dir.*has to be an absolute path"):
        settings(tmp_path, "cdi_dir: run/cdi\n")


def test_a_change_is_told_to_whoever_waits_and_none_is_not(tmp_path: Path) -> None:
    now = settings(tmp_path)
    change = now.next_change()
    now.reload()
    now.choose("default")
    assert not change.is_set()
    now.choose("edge")
    assert change.is_set()
    assert now.now.compare_s == 1


@pytest.mark.parametrize("wrong", ["rescan_s: 0\n", "rescan_s: 9\n", "- x\n"])
def test_what_is_wrong_changes_nothing(tmp_path: Path, wrong: str) -> None:
    now = settings(tmp_path)
    now.choose("edge")
    before, change = (now.file, now.name, now.now), now.next_change()
    # The second lacks this node's config.
    (tmp_path / "plugin.yaml").write_text(wrong)
    with pytest.raises((InvalidRequest, NotFound)):
        now.reload()
    with pytest.raises(NotFound, match="no config is named 'other': there are default, edge, lab"):
        now.choose("other")
    assert (now.file, now.name, now.now) == before
    assert not change.is_set()


def test_a_changed_key_that_is_read_once_is_said_and_the_others_hold(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now = settings(tmp_path)
    (tmp_path / "plugin.yaml").write_text("kubelet_dir: /k\nmetrics_address: ':1'\nrescan_s: 9\n")
    now.reload()
    assert now.now.rescan_s == 9
    assert "kubelet_dir, metrics_address changed in" in caplog.text
    caplog.clear()
    now.reload()
    assert caplog.text == ""


def test_every_key_is_either_read_once_or_may_change() -> None:
    assert set(Config().fixed()) | set(NodeConfig.model_fields) | {"configs"} == set(Config.model_fields)


def test_the_chosen_name_is_kept(tmp_path: Path) -> None:
    chosen = ChosenName(tmp_path / "state/config-name")
    assert chosen.read() == ""
    chosen.write("edge")
    assert ChosenName(tmp_path / "state/config-name").read() == "edge"


def test_a_name_that_cannot_be_kept_or_read_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "state").write_text("a file")
    chosen = ChosenName(tmp_path / "state/config-name")
    # It is tried at each look at the node.
    for _ in range(3):
        chosen.write("edge")
    unread, unkept = caplog.messages
    assert unread.startswith("which config this node had is not known: ")
    assert unkept.startswith("which config this node has is not kept: ")
    assert chosen.read() == ""
