// Products against a multiplication bit by bit, on every path; the laws of a field; a power and a fold.
#include "crypto/field.h"

#include <vector>

#include "check.h"
#include "cpu.h"
#include "crypto/prg.h"
#include "crypto/tweaks.h"

using namespace sphynx;
using namespace sphynx::crypto;

namespace {

Block slow_product(Block a, Block b) {
    Block product = {};
    for (std::size_t bit = 128; bit-- > 0;) product = doubled(product) ^ (mask_of(a.bit(bit)) & b);
    return product;
}

void check_products() {
    Prg prg = Prg::fixed_seed_for_tests({11, 12});
    for (int i = 0; i < 200; ++i) {
        const Block a = prg.block(), b = prg.block();
        CHECK(field_product(a, b) == slow_product(a, b));
    }
    const std::uint64_t all = ~std::uint64_t{0};
    for (const Block a :
         {Block{}, Block{1, 0}, Block{all, all}, Block{0, std::uint64_t{1} << 63}, Block{2, 0}}) {
        for (const Block b : {Block{}, Block{1, 0}, Block{all, all}, Block{0, 1}}) {
            CHECK(field_product(a, b) == slow_product(a, b));
        }
    }
    // Every element but 0 has order dividing 2^128 - 1: a^(2^128) = a.
    const Block a = prg.block();
    Block power = a;
    for (int i = 0; i < 128; ++i) power = field_product(power, power);
    CHECK(power == a);
    CHECK((field_power(a, 0) == Block{1, 0}));
    CHECK(field_power(a, 5) == field_product(a, field_product(field_product(a, a), field_product(a, a))));

    for (const std::size_t columns : {1, 3, 8}) {
        constexpr std::size_t row_count = 5;
        std::vector<Block> rows(row_count * columns), factors(columns), expected(row_count);
        std::vector<OpenSum> sums(row_count), twice(row_count);
        for (auto* blocks : {&rows, &factors}) prg.fill_blocks(blocks->data(), blocks->size());
        for (std::size_t i = 0; i < rows.size(); ++i) {
            expected[i / columns] ^= slow_product(rows[i], factors[i % columns]);
        }
        fold_rows(rows.data(), row_count, columns, factors.data(), sums.data());
        for (int i = 0; i < 2; ++i) fold_rows(rows.data(), row_count, columns, factors.data(), twice.data());
        for (std::size_t b = 0; b < row_count; ++b) {
            CHECK(sums[b].reduced() == expected[b]);
            CHECK(twice[b].reduced() == Block{});
            twice[b] ^= sums[b];
            CHECK(twice[b].reduced() == expected[b]);
        }
    }
}

}  // namespace

int main() {
    for (const CpuFeatures& features : features_to_test()) {
        const LimitFeatures limit(features);
        check_products();
    }
    return test_result();
}
