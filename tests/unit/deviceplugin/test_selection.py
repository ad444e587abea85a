import pytest
from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.config import NodeConfig, Pick
from deviceplugin.devices.selection import LEFT_OUT, picks, select
from edgeshare.contract.devices import Accelerator, Device

T4, A100 = Device("GPU-a", 0, "Tesla T4", 15360), Device("GPU-b", 1, "NVIDIA A100-SXM4-40GB", 40960)
CORAL = Device("usb-1-2", 0, "Coral", 0, Accelerator.EDGETPU)
PART = Device("MIG-c", 2, "NVIDIA A100-SXM4-40GB MIG 1g.5gb", 4864, parent="GPU-c")
ALL = (T4, A100, CORAL)

PICKS = st.builds(
    Pick,
    id=st.sampled_from([device.id for device in ALL] + ["GPU-x"]),
    index=st.none() | st.integers(0, 2),
    kind=st.none() | st.sampled_from(list(Accelerator)),
)


@pytest.mark.parametrize(
    ("pick", "picked"),
    [
        (Pick(id="GPU-b"), (A100,)),
        (Pick(index=0), (T4, CORAL)),
        (Pick(index=0, kind=Accelerator.GPU), (T4,)),
        (Pick(model="tesla-t4"), (T4,)),
        (Pick(model="NVIDIA-A100-SXM4-40GB"), (A100,)),
        (Pick(model="Tesla"), ()),
        (Pick(kind=Accelerator.EDGETPU), (CORAL,)),
        (Pick(id="GPU-b", index=0), ()),
    ],
)
def test_a_pick_picks_the_devices_of_which_all_is_true_that_it_gives(pick: Pick, picked: tuple[Device, ...]) -> None:
    assert tuple(device for device in ALL if picks(pick, device)) == picked


@pytest.mark.parametrize(
    ("model", "picked"),
    [
        ("nvidia-a100-sxm4-40gb", (A100, PART)),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", (PART,)),
        ("NVIDIA A100-SXM4-40GB MIG 2g.10gb", ()),
    ],
)
def test_a_model_of_gpus_is_one_of_their_mig_devices_too(model: str, picked: tuple[Device, ...]) -> None:
    assert tuple(device for device in (T4, A100, PART) if picks(Pick(model=model), device)) == picked


def test_whoever_names_a_gpu_means_its_mig_devices_too() -> None:
    assert select((T4, PART), NodeConfig(exclude=(Pick(id="GPU-c"),)), ()).devices == (T4,)
    selection = select((T4, PART), NodeConfig(include=(Pick(id="GPU-c"),)), ())
    assert (selection.devices, selection.faults) == ((PART,), ())
    assert select((T4, PART), NodeConfig(include=(Pick(id="GPU-a"),)), ()).devices == (T4,)


def test_nothing_named_shares_all() -> None:
    assert select(ALL, NodeConfig(), ()).devices == ALL


def test_what_is_excluded_is_not_shared_though_it_is_included() -> None:
    config = NodeConfig(include=(Pick(kind=Accelerator.GPU),), exclude=(Pick(index=1),))
    assert select(ALL, config, ()).devices == (T4,)


def test_a_device_that_containers_have_stays_listed_and_gets_no_others() -> None:
    (device,) = select((T4,), NodeConfig(exclude=(Pick(id="GPU-a"),)), {"GPU-a"}).devices
    assert (device.id, device.healthy, device.cause) == ("GPU-a", False, LEFT_OUT)


@given(st.tuples(PICKS), st.tuples(PICKS), st.sets(st.sampled_from([device.id for device in ALL])))
def test_no_device_is_healthy_that_the_configuration_leaves_out(
    include: tuple[Pick, ...], exclude: tuple[Pick, ...], held: set[str]
) -> None:
    selection = select(ALL, NodeConfig(include=include, exclude=exclude), held)
    for device in selection.devices:
        left_out = any(picks(pick, device) for pick in exclude) or not any(picks(pick, device) for pick in include)
        assert device.healthy != left_out
    assert held <= {device.id for device in selection.devices}


def test_a_device_that_is_named_and_not_there_is_a_fault_and_a_model_or_kind_is_not() -> None:
    config = NodeConfig(exclude=(Pick(id="GPU-x"), Pick(index=7), Pick(model="H100"), Pick(model="T4")))
    one, other = select((T4,), config, ()).faults
    assert one.startswith("exclude names a device that is not there (id: GPU-x): correct it")
    assert "(index: 7)" in other
    assert other.endswith("this node has 0: GPU-a (Tesla T4)")


def test_a_configuration_that_leaves_none_of_the_devices_is_a_fault_and_having_none_is_not() -> None:
    config = NodeConfig(include=(Pick(model="H100"),))
    (fault,) = select(ALL, config, ()).faults
    assert "leave none of the 3 devices" in fault
    assert select((), config, ()).faults == ()


def test_a_contested_device_is_not_shared_and_said_unless_it_is_left_out_anyway() -> None:
    why = {"GPU-a": "another plugin has it"}
    selection = select((T4, A100), NodeConfig(), (), why)
    assert (selection.devices, selection.contested) == ((A100,), ("another plugin has it",))
    assert select((T4, A100), NodeConfig(exclude=(Pick(id="GPU-a"),)), (), why).contested == ()
    (held, _) = select((T4, A100), NodeConfig(), {"GPU-a"}, why).devices
    assert (held.healthy, held.cause) == (False, "another plugin has it")
