"""What flows through the tensor unit between two stages of a pass."""

from dataclasses import dataclass, replace

from sim.npu.check.scope import Path
from sim.npu.diagnostics import IllegalError
from sim.npu.program import Axis, DType, Placement, Tensor
from sim.npu.syntax import Word


@dataclass(frozen=True)
class Stream:
    """The data behind one stage."""

    dtype: DType
    axes: tuple[Axis, ...]
    placement: Placement
    entered: tuple[Axis, ...] | None = None
    """Axes at the entry of the vector engine: those of ``self``; None before it."""
    summed: tuple[Axis, ...] = ()
    """Axes that were contracted or summed."""

    def axis(self, word: Word) -> Axis:
        """Find an axis that the stream has.

        Raises:
            IllegalError: it has not, or the axis counts blocks.
        """
        found = next((axis for axis in self.axes if axis.name == word.text), None)
        if found is None:
            names = ", ".join(axis.name for axis in self.axes)
            message = f"`{word.text}` is not defined in this stream; its axes are [{names}]"
            raise IllegalError("E-NAME", word.at, message)
        return whole(found, word)

    def vector(self, word: Word) -> "Stream":
        """Enter the vector engine, or stay in it.

        Raises:
            IllegalError: the stream holds codes.
        """
        if self.dtype not in ("bf16", "f32"):
            raise not_cast(self.dtype, word)
        return replace(self, dtype="f32", entered=self.entered or self.axes)

    def without(self, axes: tuple[Axis, ...]) -> "Stream":
        """Sum over ``axes``."""
        left = tuple(axis for axis in self.axes if axis not in axes)
        return replace(self, dtype="f32", axes=left, summed=self.summed + axes)


def whole(axis: Axis, word: Word) -> Axis:
    """Return ``axis``.

    Raises:
        IllegalError: it counts blocks, which can only scale a contraction.
    """
    if axis.parent:
        message = f"{axis.name} counts blocks of {axis.parent}; it only scales a contraction"
        raise IllegalError("E-SCALE-AXES", word.at, message)
    return axis


def not_cast(dtype: DType, word: Word) -> IllegalError:
    """Make the error of codes where values are needed."""
    return IllegalError("E-FETCH-CAST", word.at, f"{dtype} is not cast on fetch; look it up")


def check_untiled(op: str, axis: Axis, path: Path, word: Word) -> None:
    """Check that ``op`` sees all of an axis.

    Raises:
        IllegalError: a loop tiles the axis.
    """
    if any(frame.axis == axis for frame in path):
        message = f"{op} over {axis.name} inside a loop over {axis.name}"
        raise IllegalError("E-LOOP-SUM", word.at, message)


def check_one_cluster(axis: Axis, placement: Placement, word: Word) -> None:
    """Check that no cluster would need the other's part of an axis.

    Raises:
        IllegalError: clusters cut it.
    """
    if placement.n_cluster_parts(axis.name) > 1:
        message = f"{axis.name} is cut over clusters; exchange through HBM"
        raise IllegalError("E-CONTRACT-CLUSTER", word.at, message)


def check_lies_alike(tensor: Tensor, stream: Stream, word: Word) -> None:
    """Check that each slice holds the part of an operand that its part of the stream needs.

    Raises:
        IllegalError: along some axis it does not.
    """
    own, other = tensor.placement, stream.placement
    assert own is not None, tensor.name
    if (own.n_clusters, own.n_slices) != (other.n_clusters, other.n_slices):
        message = (
            f"`{word.text}` lies in {own.n_clusters} x {own.n_slices} slices, "
            f"the stream in {other.n_clusters} x {other.n_slices}"
        )
        raise IllegalError("E-PLACE-MATCH", word.at, message)
    for axis in tensor.axes:
        if _cuts(own, axis) != _cuts(other, axis):
            message = (
                f"`{word.text}` cuts {axis.root} into {_cuts(own, axis)}, "
                f"the stream into {_cuts(other, axis)}"
            )
            raise IllegalError("E-PLACE-MATCH", word.at, message)


def _cuts(placement: Placement, axis: Axis) -> str:
    """Describe how an axis is cut; equal exactly if it is cut alike."""
    slices = [f"{n} ({stride} apart)" for stride, n in placement.strides(axis.root)]
    return " x ".join((f"{placement.n_cluster_parts(axis.root)} clusters", *slices))
