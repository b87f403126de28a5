"""What the log has no form for is refused when the program starts, not when it reads."""

from typing import Any

import pytest
from pydantic import BaseModel

from events.builders import builder


class Point(BaseModel):
    """A value inside others."""

    x: int


class Line(BaseModel):
    """Another."""

    x: int


@pytest.mark.parametrize("hint", [list[int], set[str], bytes, dict[int, str], Any])
def test_a_type_that_msgpack_does_not_give_back_is_refused(hint: Any) -> None:
    """A list would come back as a tuple."""
    with pytest.raises(TypeError, match="no form in the log"):
        builder(hint)


def test_models_that_nothing_tells_apart_are_refused() -> None:
    """Only validation could find out which of them fits."""
    with pytest.raises(TypeError, match="discriminator"):
        builder(Point | Line)


def test_a_model_in_a_tuple_of_fixed_length_is_refused() -> None:
    """No event needs one, and a model says what each place means."""
    with pytest.raises(TypeError, match="make it a model"):
        builder(tuple[Point, int])


def test_models_are_built_wherever_they_may_sit() -> None:
    """In tuples, dictionaries and what may be absent, one in the other."""
    build = builder(dict[str, tuple[Point | None, ...]])
    assert build is not None

    assert build({"a": ({"x": 1}, None)}) == {"a": (Point(x=1), None)}
