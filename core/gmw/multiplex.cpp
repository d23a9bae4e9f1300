#include "gmw/multiplex.h"

namespace sphynx::gmw {

void multiplex(const OpenedBits& opened, const MultiplexShares& shares, WordView own, unsigned k,
               unsigned wrap_shift, bool adds_public, WordSpan y) {
    const std::uint64_t ring = ~std::uint64_t{0} >> (64 - k);
    const std::uint64_t add = adds_public;
    const std::uint64_t wrap_weight = wrap_shift < 64 ? std::uint64_t{1} << wrap_shift : 0;
    for (std::size_t j = 0; j < y.size(); ++j) {
        const auto bit = [j](WordView plane) { return plane[j / 64] >> (j % 64) & 1; };
        const std::uint64_t d = bit(opened.d), e1 = bit(opened.e1), e2 = bit(opened.e2);
        const std::uint64_t sign_d = 1 - 2 * d, sign_1 = 1 - 2 * e1, sign_2 = 1 - 2 * e2;
        const std::uint64_t z = opened.z[j], delta = shares.delta[j];
        const std::uint64_t value = d * (add * z + own[j]) + sign_d * (z * delta + shares.delta_v[j]);
        const auto product = [&](std::uint64_t e, std::uint64_t sign, std::uint64_t beta,
                                 std::uint64_t delta_beta) {
            return add * d * e + d * sign * beta + sign_d * (e * delta + sign * delta_beta);
        };
        const std::uint64_t carry = product(e1, sign_1, shares.b1[j], shares.delta_b1[j]);
        const std::uint64_t wrap = product(e2, sign_2, shares.b2[j], shares.delta_b2[j]);
        y[j] = (value + carry - wrap * wrap_weight) & ring;
    }
}

void truncated_sum(WordView e1, WordView e2, WordView b1, WordView b2, WordView own, unsigned k,
                   unsigned wrap_shift, bool adds_public, WordSpan y) {
    const std::uint64_t ring = ~std::uint64_t{0} >> (64 - k);
    const std::uint64_t add = adds_public;
    for (std::size_t j = 0; j < y.size(); ++j) {
        const auto value = [j, add](WordView plane, std::uint64_t share) {
            const std::uint64_t e = plane[j / 64] >> (j % 64) & 1;
            return add * e + (share ^ -e) + e;  // e + (1 - 2 e) b, of which `add` says who adds e
        };
        y[j] = (own[j] + value(e1, b1[j]) - (value(e2, b2[j]) << wrap_shift)) & ring;
    }
}

}  // namespace sphynx::gmw
