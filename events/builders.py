"""Values of the vocabulary from stored fields that are known to be valid, without validation.

They are what pydantic makes of the same fields, in a fraction of the time: the dictionary of the
fields becomes the object's own, and what to do for a type is found out once.
"""

from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic.fields import FieldInfo

Build = Callable[[Any], Any]

_PLAIN = (bool, int, float, str, NoneType)
_set_dict = BaseModel.__dict__["__dict__"].__set__
_set_fields_set = BaseModel.__dict__["__pydantic_fields_set__"].__set__
_set_extra = BaseModel.__dict__["__pydantic_extra__"].__set__
_set_private = BaseModel.__dict__["__pydantic_private__"].__set__


def builder(hint: Any) -> Build | None:
    """How a value of a type is built from its stored form; None if it is stored as it is.

    Raises:
        TypeError: the log has no form for values of this type.
    """
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        tags = [about.discriminator for about in args[1:] if isinstance(about, FieldInfo)]
        return _tagged(args[0], tags[0]) if any(tags) else builder(args[0])
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return model_builder(hint)
    if origin is Union or origin is UnionType:
        return _optional(args)
    if origin is tuple:
        return _sequence(args)
    if origin is dict and args[0] is str:
        return _mapping(args[1])
    if hint in _PLAIN or origin is Literal:
        return None
    raise TypeError(f"{hint} has no form in the log: use numbers, texts, tuples, dicts, models")


@cache
def model_builder(model: type[BaseModel]) -> Build:
    """How a value of a model is built from its fields, which it takes over.

    Raises:
        TypeError: the log has no form for values of one of its fields.
    """
    hints = get_type_hints(model, include_extras=True)
    parts = {name: part for name in model.model_fields if (part := builder(hints[name]))}
    nested, names, new = tuple(parts.items()), set(model.model_fields), object.__new__

    def build(fields: dict[str, Any]) -> BaseModel:
        for name, part in nested:
            fields[name] = part(fields[name])
        value = new(model)
        _set_dict(value, fields)
        _set_fields_set(value, names)
        _set_extra(value, None)
        _set_private(value, None)
        return value

    return build


def _tagged(union: Any, tag: Any) -> Build:
    builders = {model.model_fields[tag].default: model_builder(model) for model in get_args(union)}
    return lambda fields: builders[fields[tag]](fields)


def _optional(args: tuple[Any, ...]) -> Build | None:
    parts = [part for arg in args if (part := builder(arg))]
    if not parts:
        return None
    if len(args) > 2 or NoneType not in args:
        raise TypeError(f"a union of {args} needs a discriminator")
    (part,) = parts
    return lambda value: None if value is None else part(value)


def _sequence(args: tuple[Any, ...]) -> Build | None:
    part, *others = [builder(arg) for arg in args if arg is not Ellipsis]
    if any(others) or (part and Ellipsis not in args):
        raise TypeError(f"a tuple of {args} has no form in the log: make it a model")
    return part and (lambda values: tuple([part(value) for value in values]))


def _mapping(arg: Any) -> Build | None:
    part = builder(arg)
    return part and (lambda values: {key: part(value) for key, value in values.items()})
