// Every combination of opened bits against the formula on integers, at several ring widths.
#include "gmw/multiplex.h"

#include <array>
#include <vector>

#include "check.h"
#include "crypto/prg.h"

using namespace sphynx;
using namespace sphynx::crypto;
using namespace sphynx::gmw;

int main() {
    Prg prg;
    constexpr std::size_t count = 100;
    for (const auto [k, w, f] : {std::array{32u, 32u, 8u}, {40u, 34u, 8u}, {64u, 64u, 0u}, {41u, 20u, 5u}}) {
        const std::uint64_t ring = ~std::uint64_t{0} >> (64 - k);
        // Values 0..5: delta, b1, b2, delta b1, delta b2, delta v, each split into two shares.
        std::vector<std::uint64_t> shares[2][6], own[2], planes[3], z(count), y[2];
        for (auto& party : shares) {
            for (auto& row : party) row.resize(count);
        }
        for (auto& row : planes) row.resize(2);
        for (int party : {0, 1}) own[party].resize(count), y[party].resize(count);
        std::vector<std::uint64_t> expected(count);
        for (std::size_t j = 0; j < count; ++j) {
            const Block coins = prg.block(), values = prg.block();
            const auto coin = [&](int i) { return coins.lo >> i & 1; };
            const std::uint64_t d = coin(0), carry = coin(1), wrap = coin(2);
            const std::uint64_t delta = coin(3), b1 = coin(4), b2 = coin(5);
            own[0][j] = values.lo & ring, own[1][j] = values.hi & ring, z[j] = coins.hi & ring;
            const std::uint64_t v = own[0][j] + own[1][j];
            const std::uint64_t bits[3] = {d ^ delta, carry ^ b1, wrap ^ b2};
            for (int i = 0; i < 3; ++i) planes[i][j / 64] |= bits[i] << (j % 64);
            const std::uint64_t secrets[6] = {delta, b1, b2, delta * b1, delta * b2, delta * v};
            for (int i = 0; i < 6; ++i) {
                shares[0][i][j] = prg.block().lo;
                shares[1][i][j] = secrets[i] - shares[0][i][j];
            }
            const std::uint64_t weight = w - f < 64 ? std::uint64_t{1} << (w - f) : 0;
            expected[j] = d * (z[j] + v + carry - wrap * weight) & ring;
        }
        for (int party : {0, 1}) {
            const auto& s = shares[party];
            multiplex({planes[0], planes[1], planes[2], z}, {s[0], s[1], s[2], s[3], s[4], s[5]}, own[party],
                      k, w - f, party == 0, y[party]);
        }
        for (std::size_t j = 0; j < count; ++j) CHECK(((y[0][j] + y[1][j]) & ring) == expected[j]);
    }
    return test_result();
}
