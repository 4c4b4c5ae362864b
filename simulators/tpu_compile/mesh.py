"""Mesh axes and what they shard. No JAX here."""

from dataclasses import dataclass
from math import prod

from catalog.lookup import shown
from errors import QuestionError

# what an axis of this name does; the names are those that MaxText, Megatron and papers use
ROLES: dict[str, str] = {
    "data": "data",
    "dp": "data",
    "replica": "data",
    "slice": "data",
    "dcn": "data",
    "fsdp": "fsdp",
    "model": "tensor",
    "tensor": "tensor",
    "tp": "tensor",
    "expert": "expert",
    "ep": "expert",
    "context": "context",
    "cp": "context",
}

# axes of weights and of activations, and the roles of the mesh axes that shard them
SHARDED_BY: dict[str, tuple[str, ...]] = {
    "embed": ("fsdp",),
    "rank": ("fsdp",),
    "heads": ("tensor",),
    "kv_heads": ("tensor",),
    "ff": ("tensor",),
    "vocab": ("tensor",),
    "experts": ("expert",),
    "batch": ("data", "fsdp", "expert"),
    "expert_batch": ("data", "fsdp"),
    "seq": ("context",),
}


@dataclass(frozen=True)
class MeshAxes:
    """Named axes of the device mesh in order, outermost first: ((name, devices), ...)."""

    axes: tuple[tuple[str, int], ...]

    @property
    def text(self) -> str:
        """As it is written, such as data=4,model=4."""
        return ",".join(f"{name}={size}" for name, size in self.axes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(size for _, size in self.axes)

    @property
    def devices(self) -> int:
        return prod(self.shape)

    def sharding(self, axis: str | None) -> tuple[str, ...]:
        """The mesh axes, longer than 1, that shard an axis of this name."""
        roles = SHARDED_BY.get(axis or "", ())
        return tuple(name for name, size in self.axes if ROLES[name] in roles and size > 1)

    def ways(self, axis: str | None) -> int:
        """Into how many parts an axis of this name is cut."""
        sizes = dict(self.axes)
        return prod(sizes[name] for name in self.sharding(axis))

    def across_slices(self, slices: int) -> tuple[int, ...]:
        """How many parts of each axis lie in different slices. Raises QuestionError where no axis can be cut so.

        Axes that talk least come first: `data`, then `fsdp`, then the rest in mesh order.
        """
        talk = {"data": 0, "fsdp": 1}
        order = sorted(range(len(self.axes)), key=lambda i: talk.get(ROLES[self.axes[i][0]], 2))
        chosen = next((i for i in order if self.axes[i][1] % slices == 0), None)
        if chosen is None:
            raise QuestionError(
                f"no axis of mesh {shown(self.text)} can be cut over {slices} slices",
                expected=f"one axis, best data, divisible by {slices}",
            )
        return tuple(slices if i == chosen else 1 for i in range(len(self.axes)))
