#include "ot/row_check.h"

namespace sphynx::ot {

RowHashes::RowHashes(Block alpha, std::size_t column, std::size_t last)
    : alpha_(alpha), factor_(crypto::field_power(alpha, column + 1)), column_(column), last_(last) {}

void RowHashes::add(BlockView rows, BlockView r) {
    const std::size_t columns = rows.size() / kCheckRows;
    Block factors[crypto::kMostFoldedColumns];
    for (std::size_t j = 0; j < columns; ++j, ++column_) {
        factors[j] = column_ == last_ ? Block{1, 0} : factor_;
        factor_ = crypto::field_product(factor_, alpha_);
    }
    crypto::fold_rows(rows.data(), kCheckRows, columns, factors, of_rows_);
    if (!r.empty()) crypto::fold_rows(r.data(), 1, columns, factors, &of_choices_);
}

RowHashes& RowHashes::operator^=(const RowHashes& other) {
    of_choices_ ^= other.of_choices_;
    for (std::size_t b = 0; b < kCheckRows; ++b) of_rows_[b] ^= other.of_rows_[b];
    return *this;
}

Digest RowHashes::digest_of_rows(BlockView corrections) const {
    Block hashes[kCheckRows];
    for (std::size_t b = 0; b < kCheckRows; ++b) {
        hashes[b] = of_rows_[b].reduced() ^ (corrections.empty() ? Block{} : corrections[b]);
    }
    Digest digest;
    crypto::Blake2b hash(sizeof digest, "sphynx OT rows");
    hash.update(hashes, sizeof hashes);
    hash.finish(&digest);
    zeroise(hashes, sizeof hashes);
    return digest;
}

}  // namespace sphynx::ot
