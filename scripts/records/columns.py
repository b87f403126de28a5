"""From the vocabulary to Arrow: which column a recorded field becomes.

Scalars keep their type; a model becomes a struct, a sequence of one type a list. What has no such
shape (mappings, unions of models, pairs of different things) becomes JSON text.
"""

import json
import types
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import pyarrow as pa
from pydantic import BaseModel


class Column(NamedTuple):
    """How a field's values are stored."""

    type: Any
    """Arrow type."""
    store: Callable[[Any], Any]
    """From a value, as `model_dump(mode="json")` gives it, to what Arrow takes."""


_SCALARS = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
_JSON = Column(pa.string(), lambda value: None if value is None else json.dumps(value))


def columns(model: type[BaseModel]) -> dict[str, Column]:
    """The columns of a model's fields, without its kind."""
    fields = model.model_fields.items()
    return {name: column(info.annotation) for name, info in fields if name != "kind"}


def column(annotation: Any) -> Column:
    """The column of one field."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return column(args[0])
    if origin is Literal:
        return column(type(args[0]))
    if origin in (Union, types.UnionType):
        inner = [arg for arg in args if arg is not type(None)]
        return column(inner[0]) if len(inner) == 1 else _JSON
    if annotation in _SCALARS:
        return Column(_SCALARS[annotation], lambda value: value)
    if origin is tuple and len(set(args) - {Ellipsis}) == 1:
        return _list_of(column(args[0]))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _struct_of(columns(annotation))
    return _JSON


def _list_of(item: Column) -> Column:
    def store(values: list[Any] | None) -> list[Any] | None:
        return None if values is None else [item.store(value) for value in values]

    return Column(pa.list_(item.type), store)


def _struct_of(fields: dict[str, Column]) -> Column:
    def store(value: dict[str, Any] | None) -> dict[str, Any] | None:
        return None if value is None else {n: c.store(value[n]) for n, c in fields.items()}

    return Column(pa.struct({name: column.type for name, column in fields.items()}), store)
