"""Named tuples that compiled functions lend to each other, by their address.

What numba passes on is all that is in a tuple: some three hundred numbers where a problem and its
system go from one function to another. The time to compile a function follows their number. So who
is called from Python lends its tuples, and all others get three addresses. Only a tuple that came
as an argument may be lent: one that is made in the function is gone after its last use by name.

Arrays of a lent tuple belong to who lends it. Otherwise numba would count who uses them whenever
one is taken from its tuple, which takes several times as long as all the rest for a user with few
votes.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, models, register_model

__all__ = ["lent"]


class Lent(types.Type):
    """The address of a named tuple; its fields are read as those of the tuple."""

    def __init__(self, record: Any) -> None:
        self.dtype = record
        super().__init__(name=f"lent {record.name}")


register_model(Lent)(models.PointerModel)


@intrinsic
def lent(_context, record):
    """Return the address of a tuple, as long as the caller runs; of what is lent, itself."""
    if isinstance(record, Lent):
        return record(record), lambda _context, _builder, _signature, arguments: arguments[0]

    def generate(context, builder, _signature, arguments):
        model = context.data_model_manager[record]
        place = cgutils.alloca_once(builder, model.get_data_type())
        builder.store(model.as_data(builder, arguments[0]), place)
        return place

    return Lent(record)(record), generate


@infer_getattr
class _Fields(AttributeTemplate):
    key = Lent

    def generic_resolve(self, lender: Any, name: str) -> Any:  # type: ignore[override]
        record = lender.dtype
        if name not in record.fields:
            return None
        field = record.types[record.fields.index(name)]
        return Lent(field) if isinstance(field, types.BaseNamedTuple) else field


@lower_getattr_generic(Lent)
def _field(context, builder, lender, address, name):
    place = lender.dtype.fields.index(name)
    field, at = lender.dtype.types[place], cgutils.gep_inbounds(builder, address, 0, place)
    if isinstance(field, types.BaseNamedTuple):
        return at
    model = context.data_model_manager[field]
    value = model.load_from_data_pointer(builder, at)
    if not isinstance(field, types.Array):
        return impl_ret_borrowed(context, builder, field, value)
    for owner in ("meminfo", "parent"):
        nobody = context.get_constant_null(model.get_member_fe_type(owner))
        value = model.set(builder, value, nobody, owner)
    return value
