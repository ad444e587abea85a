"""What is read out of an image's archive."""

from pathlib import Path

from release.images import packages

from tests.kit.programs.archive import write_image, write_layer

PLACE = "opt/edgeshare/lib/python3.11/site-packages"


def metadata(folder: Path, name: str, version: str) -> Path:
    """A file as pip leaves one."""
    path = folder / f"{name}-{version}"
    path.write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n\nAbout it.\n")
    return path


def test_packages_are_those_that_no_later_layer_takes_away(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    nothing.touch()
    kept, gone, newer = (metadata(tmp_path, *each) for each in (("kept", "1"), ("moved", "1"), ("moved", "2")))
    lower = {f"{PLACE}/kept-1.dist-info/METADATA": kept, f"{PLACE}/moved-1.dist-info/METADATA": gone}
    upper = {f"{PLACE}/.wh.moved-1.dist-info": nothing, f"{PLACE}/moved-2.dist-info/METADATA": newer}
    layers = [write_layer(tmp_path / "lower.tar", lower), write_layer(tmp_path / "upper.tar", upper)]
    archive = write_image(tmp_path / "image.tar", "localhost/thing:1", layers, entrypoint=["/thing"])
    assert sorted((each["name"], each["version"]) for each in packages(archive)) == [("kept", "1"), ("moved", "2")]


def test_packages_of_the_base_are_left_out(tmp_path: Path) -> None:
    its = metadata(tmp_path, "its-own", "1")
    layer = write_layer(
        tmp_path / "layer.tar", {"usr/local/lib/python3.11/site-packages/its_own-1.dist-info/METADATA": its}
    )
    archive = write_image(tmp_path / "image.tar", "localhost/thing:1", [layer], entrypoint=["/thing"])
    assert packages(archive) == []
