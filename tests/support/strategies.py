"""Hypothesis strategies for the types of the vocabulary, made from their hints and limits."""

from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Le, Lt, MinLen
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from events.campaign import Campaign, Model, ModelName, Roles
from events.vocabulary import AnyEvent, OrderId, Record, Sha, Words

_text = st.text(st.characters(codec="utf-8"), max_size=8)
_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.integers(-(2**63), 2**64 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: _text,
    NoneType: st.none(),
    Sha: st.binary(min_size=32, max_size=32).map(bytes.hex),
    OrderId: st.from_regex(r"[0-9]{20}-[0-9a-f]{8}", fullmatch=True).filter(str.isascii),
    Words: st.text(st.characters(codec="utf-8"), min_size=1, max_size=8),
    ModelName: st.from_regex(r"[a-z0-9][a-z0-9._-]{,8}", fullmatch=True).filter(str.isascii),
    Model: st.builds(Model, command=st.tuples(_text), timeout_s=st.floats(1, 1e9)),
}
_PLAIN[Campaign] = st.builds(
    Campaign,
    name=st.just("any"),
    target=_text,
    kernels=st.lists(_text, min_size=1, max_size=3).map(tuple),
    seed=st.integers(0, 2**63 - 1),
    models=st.fixed_dictionaries({"other": _PLAIN[Model]}),
    roles=st.just(Roles(analyst=("default", "other"))),
)


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type as a log may hold it."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin is Annotated:
        return values(args[0])
    if origin is Literal:
        return st.sampled_from(args)
    if origin is dict:
        return st.dictionaries(values(args[0]), values(args[1]), max_size=2)
    if origin is tuple and args[-1] is Ellipsis:
        return st.lists(values(args[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, args))
    if origin is not None:
        return st.one_of(*map(values, args))
    return _model(hint)


def records() -> st.SearchStrategy[list[Record]]:
    """Batches of records of every kind, numbered from 0."""
    rest = st.tuples(values(int), _text, values(AnyEvent), values(tuple[int, ...]))
    return st.lists(rest, max_size=4).map(
        lambda rows: [Record(seq, *row) for seq, row in enumerate(rows)]
    )


def _model(model: type[BaseModel]) -> st.SearchStrategy[Any]:
    hints = get_type_hints(model, include_extras=True)
    fields = {name: _field(hints[name], info) for name, info in model.model_fields.items()}
    return st.fixed_dictionaries(fields).map(lambda drawn: model(**drawn))


def _field(hint: Any, info: FieldInfo) -> st.SearchStrategy[Any]:
    strategy = values(hint)
    for limit in info.metadata:
        if isinstance(limit, Gt | Ge | Lt | Le):
            strategy = strategy.filter(_within(limit))
        elif isinstance(limit, MinLen):
            strategy = strategy.filter(_as_long_as(limit.min_length))
    return strategy


def _as_long_as(least: int) -> Any:
    return lambda value: len(value) >= least


def _within(limit: Gt | Ge | Lt | Le) -> Any:
    match limit:
        case Gt(gt=low):
            return lambda value: value > low
        case Ge(ge=low):
            return lambda value: value >= low
        case Lt(lt=high):
            return lambda value: value < high
        case Le(le=high):
            return lambda value: value <= high
