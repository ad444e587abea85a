"""Reads a part's configuration: a YAML file, parsed strictly into that part's own model."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, TypeVar, get_args

import yaml
from pydantic import AfterValidator, BaseModel, Field, ValidationError

from edgeshare.contract.address import parse_address
from edgeshare.contract.errors import InvalidRequest
from edgeshare.contract.object_names import NAME_MAX

Model = TypeVar("Model", bound=BaseModel)


UNFIT = re.compile("[\\0\ud800-\udfff]")


def _address(text: str) -> str:
    parse_address(text)
    return text


Address = Annotated[str, AfterValidator(_address)]
"""``host:port``, or ``:port`` for every address of the machine."""

NodeName = Annotated[str, Field(max_length=NAME_MAX, pattern=r"^[a-z0-9.-]*$")]
"""A node's name in the cluster; empty: the environment's NODE_NAME."""

MetricsAddress = Annotated[str, AfterValidator(lambda text: text and _address(text))]
"""An ``Address``, or empty for nowhere."""


def read_config(path: Path | None, model: type[Model]) -> Model:
    """The configuration in ``path``, or the defaults where there is none.

    Raises InvalidRequest, in one line that names the file and the key, for a file that cannot be read, an
    unknown key or a value out of range. ``model`` has to forbid extra keys.
    """
    if path is None:
        return model()
    try:
        text = path.read_text(encoding="utf-8")
        content = yaml.safe_load(text)
        _check_texts(text)
    except OSError as error:
        raise InvalidRequest(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        # Text that is no UTF-8, a date that is none, a number without end; lists in lists without end.
        raise InvalidRequest(f"{path}: is not YAML: {_one_line(str(error))}") from error
    if content is None:
        return model()
    if not isinstance(content, dict):
        raise InvalidRequest(f"{path}: expected lines of the form 'key: value', found a {type(content).__name__}")
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise InvalidRequest(f"{path}: {_explain(error, model)}") from error


def _check_texts(text: str) -> None:
    """Raises ValueError where YAML's escapes make what no path can have: a zero, or half of a character."""
    for event in yaml.parse(text):
        if isinstance(event, yaml.ScalarEvent) and UNFIT.search(event.value):
            assert event.start_mark is not None
            raise ValueError(f"line {event.start_mark.line + 1} has what no path and no name can have")


def _explain(error: ValidationError, model: type[BaseModel]) -> str:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] in ("extra_forbidden", "invalid_key"):
        return f"unknown key '{key}': the keys are {', '.join(_model_at(model, first['loc'][:-1]).model_fields)}"
    # What several keys say together names them itself.
    found = f", found {_one_line(repr(first['input']))}"
    return f"{key}: {_one_line(first['msg'])}{found}" if key else _one_line(first["msg"])


def _model_at(model: type[BaseModel], place: Iterable[int | str]) -> type[BaseModel]:
    for part in place:
        # A name or a number in between leads into a mapping's or a list's model, which its field led to already.
        field = model.model_fields.get(str(part))
        model = (_model_in(field.annotation) if field else None) or model
    return model


def _model_in(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)


def _one_line(text: str) -> str:
    return " ".join(text.split())
