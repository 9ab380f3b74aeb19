"""The only place that tells NumPy, SciPy and torch apart."""

from thirdmoment._array.memory import give_back
from thirdmoment._array.namespace import (
    Array,
    add_rows,
    array_namespace,
    random_normal,
    row_signs,
    scrambled,
    to_numpy,
)
from thirdmoment._array.rows import (
    CompiledRows,
    DenseRows,
    Rows,
    ShiftedRows,
    as_rows,
    check_sparse,
    content_keys,
    content_signs,
    key_signs,
    row_blocks,
    row_keys,
)
from thirdmoment._array.threads import (
    blas_as_before,
    effective_threads,
    map_in_order,
    single_threaded_blas,
)

__all__ = [
    "Array",
    "CompiledRows",
    "DenseRows",
    "Rows",
    "ShiftedRows",
    "add_rows",
    "array_namespace",
    "as_rows",
    "blas_as_before",
    "check_sparse",
    "content_keys",
    "content_signs",
    "effective_threads",
    "give_back",
    "key_signs",
    "map_in_order",
    "random_normal",
    "row_blocks",
    "row_keys",
    "row_signs",
    "scrambled",
    "single_threaded_blas",
    "to_numpy",
]
