#include "crypto/field.h"

#include "cpu.h"
#include "crypto/field_lanes.h"

namespace sphynx::crypto {
namespace {

std::uint64_t reversed(std::uint64_t x) {
    x = __builtin_bswap64(x);
    x = (x >> 4 & 0x0f0f0f0f0f0f0f0f) | (x & 0x0f0f0f0f0f0f0f0f) << 4;
    x = (x >> 2 & 0x3333333333333333) | (x & 0x3333333333333333) << 2;
    return (x >> 1 & 0x5555555555555555) | (x & 0x5555555555555555) << 1;
}

// The low word of the product of two polynomials. With every fourth bit taken, at most 16 ones meet in a place of the
// integer product, and their carries stay within the three bits that are masked away.
std::uint64_t low_product(std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t every_fourth = 0x1111111111111111;
    std::uint64_t a_part[4], b_part[4], product = 0;
    for (int i = 0; i < 4; ++i) a_part[i] = a & every_fourth << i, b_part[i] = b & every_fourth << i;
    for (int place = 0; place < 4; ++place) {
        std::uint64_t sum = 0;
        for (int i = 0; i < 4; ++i) sum ^= a_part[i] * b_part[(place - i) & 3];
        product |= sum & every_fourth << place;
    }
    return product;
}

struct PortableField {
    struct Factor {
        Factor() = default;
        explicit Factor(Block factor) : own(factor), both(factor.lo ^ factor.hi) {}
        Block own = {};
        std::uint64_t both = 0;
    };
    struct Sum {
        explicit Sum(const OpenSum& open) : own(open) {}
        static void add_product(Block& sum, std::uint64_t a, std::uint64_t b) {
            sum.lo ^= low_product(a, b);
            sum.hi ^= reversed(low_product(reversed(a), reversed(b))) >> 1;
        }
        void add(const Block* row, const Factor& factor) {
            add_product(own.low, row->lo, factor.own.lo);
            add_product(own.high, row->hi, factor.own.hi);
            add_product(own.middle, row->lo ^ row->hi, factor.both);
        }
        void store(OpenSum& open) const { open = own; }
        OpenSum own;
    };
};

const FieldKernels& field_kernels() {
    [[maybe_unused]] const CpuFeatures& cpu = usable_features();
#if defined(__aarch64__)
    if (cpu.pmull) return pmull_field();
#elif defined(__x86_64__)
    if (cpu.vpclmul) return vpclmul_field();
    if (cpu.pclmul) return pclmul_field();
#endif
    return portable_field();
}

}  // namespace

const FieldKernels& portable_field() {
    static constexpr FieldKernels table = {"portable", fold_lanes<PortableField>};
    return table;
}

// x^128 = x^7 + x^2 + x + 1: the two high words go down one after the other.
Block OpenSum::reduced() const {
    const Block between = low ^ high ^ middle;
    const std::uint64_t w1 = low.hi ^ between.lo, w2 = high.lo ^ between.hi, w3 = high.hi;
    const auto down = [](std::uint64_t a) { return a ^ a << 1 ^ a << 2 ^ a << 7; };
    const auto over = [](std::uint64_t a) { return a >> 63 ^ a >> 62 ^ a >> 57; };
    const std::uint64_t second = w2 ^ over(w3);
    return {low.lo ^ down(second), w1 ^ down(w3) ^ over(second)};
}

void fold_rows(const Block* rows, std::size_t row_count, std::size_t columns, const Block* factors,
               OpenSum* sums) {
    field_kernels().fold(rows, row_count, columns, factors, sums);
}

Block field_product(Block a, Block b) {
    OpenSum product;
    fold_rows(&a, 1, 1, &b, &product);
    return product.reduced();
}

Block field_power(Block base, std::uint64_t exponent) {
    Block power = {1, 0};
    for (; exponent; exponent >>= 1, base = field_product(base, base)) {
        if (exponent & 1) power = field_product(power, base);
    }
    return power;
}

const char* field_path_name() {
    return field_kernels().name;
}

}  // namespace sphynx::crypto
