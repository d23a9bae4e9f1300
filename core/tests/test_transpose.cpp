#include "bits/transpose.h"

#include <vector>

#include "check.h"
#include "cpu.h"
#include "crypto/prg.h"

using namespace sphynx;
using namespace sphynx::bits;
using namespace sphynx::crypto;

int main() {
    Prg prg = Prg::fixed_seed_for_tests({1, 2});

    constexpr std::size_t row_blocks = 3;
    std::vector<Block> rows(128 * row_blocks), columns(128 * row_blocks);
    prg.fill_blocks(rows.data(), rows.size());
    for (const CpuFeatures& features : features_to_test()) {
        const LimitFeatures limit(features);
        transpose_rows_to_blocks(rows.data(), row_blocks, columns.data());
        for (std::size_t row = 0; row < 128; ++row) {
            for (std::size_t column = 0; column < 128 * row_blocks; ++column) {
                CHECK(rows[row * row_blocks + column / 128].bit(column % 128) == columns[column].bit(row));
            }
        }
    }

    for (std::size_t count : {1, 63, 64, 65, 200}) {
        for (unsigned width : {1u, 31u, 32u, 33u, 41u, 64u}) {
            std::vector<std::uint64_t> values(count), back(count), planes(width * plane_words(count));
            prg.fill(values.data(), 8 * count);
            slice_bits(values.data(), count, width, planes.data());
            for (std::size_t j = 0; j < count; ++j) {
                for (unsigned b = 0; b < width; ++b) {
                    const std::uint64_t plane_bit = planes[b * plane_words(count) + j / 64] >> (j % 64) & 1;
                    CHECK(plane_bit == (values[j] >> b & 1));
                }
            }
            unslice_bits(planes.data(), count, width, back.data());
            const std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
            for (std::size_t j = 0; j < count; ++j) CHECK(back[j] == (values[j] & mask));
        }
    }
    return test_result();
}
