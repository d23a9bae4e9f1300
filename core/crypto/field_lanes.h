// The loops of field.h, generic over how two halves are multiplied; each kernels' file instantiates them in its own
// unnamed namespace, as lanes.h says. A Lane offers
//   Factor(block)    a factor as it is needed for many products
//   Sum(open)        an OpenSum in registers: add(row, factor); store(open)
#pragma once

#include "crypto/field.h"

namespace sphynx::crypto {

struct FieldKernels {
    const char* name;
    void (*fold)(const Block* rows, std::size_t row_count, std::size_t columns, const Block* factors,
                 OpenSum* sums);
};

const FieldKernels& portable_field();
const FieldKernels& pmull_field();    // aarch64 only
const FieldKernels& pclmul_field();   // x86-64 only
const FieldKernels& vpclmul_field();  // x86-64 only

// `Columns` is the number of columns where it is known, so that the factors stay in registers, and 0 elsewhere.
template <class Lane, std::size_t kColumns>
void fold_columns(const Block* rows, std::size_t row_count, std::size_t columns, const Block* factors,
                  OpenSum* sums) {
    if (kColumns != 0) columns = kColumns;
    typename Lane::Factor prepared[kMostFoldedColumns] = {};  // also those that are not in use
    for (std::size_t j = 0; j < columns; ++j) prepared[j] = typename Lane::Factor(factors[j]);
    for (std::size_t b = 0; b < row_count; ++b, rows += columns) {
        typename Lane::Sum sum(sums[b]);
        for (std::size_t j = 0; j < columns; ++j) sum.add(rows + j, prepared[j]);
        sum.store(sums[b]);
    }
}

template <class Lane>
void fold_lanes(const Block* rows, std::size_t row_count, std::size_t columns, const Block* factors,
                OpenSum* sums) {
    if (columns == kMostFoldedColumns) {
        fold_columns<Lane, kMostFoldedColumns>(rows, row_count, columns, factors, sums);
    } else {
        fold_columns<Lane, 0>(rows, row_count, columns, factors, sums);
    }
}

}  // namespace sphynx::crypto
